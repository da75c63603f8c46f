/** The loop of the balancing with a few seeds. `npm run test:seeds` plays 10,000. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { playBalances } from "./steady.ts";

const test = suite("proxy/balance/steady");

test("with random clients and one slow backend, the moves come to rest within two hours", () => {
  const { clients, late, problems } = playBalances(1, 40);
  assert.equal([late, problems], [0, []]);
  assert.ok(clients > 4000, String(clients));
});

// In seed 813, nothing moves for more than an hour. Then a heavy client moves, and more than 20 moves follow.
test("moves that begin again after a rest come to rest, too", () => {
  const { late, problems } = playBalances(813, 813);
  assert.equal([late, problems], [1, []]);
});

test.run();
