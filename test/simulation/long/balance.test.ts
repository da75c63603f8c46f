/**
 * The loop of the balancing with 10,000 seeds: 20,000 hours of clients and backends. BALANCE_SEEDS="from-to" plays other
 * seeds.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { playBalances } from "../../proxy/balance/steady.ts";
import { figure } from "../../support/figure.ts";

const test = suite("simulation/long/balance");
const [from = 1, to = 10_000] = (process.env["BALANCE_SEEDS"] ?? "1-10000").split("-").map(Number);

test("in ten thousand runs with random clients and one slow backend, the moves come to rest", () => {
  const { problems, ...sum } = playBalances(from, to);
  figure(`seeds ${from} to ${to}: ${problems.length} problems, ${JSON.stringify(sum)}`);
  assert.equal(problems, []);
  assert.ok(sum.first > sum.clients * 0.1, "too few moves at first");
});

test.run();
