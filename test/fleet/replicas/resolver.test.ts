import { setImmediate as turn } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Address, textOf } from "../../../src/base/address.ts";
import { Failure } from "../../../src/base/failure.ts";
import { type Entry, Journal } from "../../../src/events/journal.ts";
import { resolver } from "../../../src/fleet/replicas/resolver.ts";
import { type Discovered, foundAt } from "../../../src/ops/discovery/discovered.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("fleet/replicas/resolver");

test("a name is resolved every 5 s; what does not resolve, or to too many, keeps the last result", async () => {
  const clock = manualClock();
  const journal = new Journal(clock);
  const entries: Entry[] = [];
  journal.subscribe((entry) => entries.push(entry));
  let answer: readonly Discovered[] | Failure = [foundAt("10.0.0.2", 7480), foundAt("10.0.0.1", 7480)];
  const found: string[] = [];
  const source = { from: "DNS", ask: () => Promise.resolve(answer), giveUp() {}, stop() {} };
  const resolve = resolver({ clock, journal, sourceOf: () => source });
  const stop = resolve({ hostname: "wk.svc", port: 7480 }, (addresses: readonly Address[]) =>
    found.push(addresses.map((address) => textOf(address)).join()),
  );
  const pass = async (ms: number): Promise<void> => {
    for (let step = 0; step < ms; step += 1000) {
      await turn();
      clock.advance(1000);
    }
    await turn();
  };
  await pass(1000);
  assert.equal(found, ["10.0.0.1:7480,10.0.0.2:7480"]);
  answer = [foundAt("10.0.0.1", 7480)];
  await pass(5000);
  assert.is(found.length, 2);
  const problems = [
    [[], "The name has no address"],
    [new Failure("bad-file", "proxy", "Cannot resolve: ENOTFOUND"), "Cannot resolve: ENOTFOUND"],
    [Array.from({ length: 65 }, (_, at) => foundAt(`10.0.1.${at + 1}`, 7480)), "65 replicas, more than 64"],
    [[foundAt("169.254.169.254", 80)], 'Discovered "169.254.169.254:80" is not a backend\'s address'],
  ] as const;
  for (const [bad, reason] of problems) {
    answer = bad;
    await pass(10_000);
    const last = entries.findLast(({ kind }) => kind === "discovery.failed");
    assert.equal(last, { kind: "discovery.failed", from: "admin.replicas", reason });
  }
  assert.is(found.length, 2);
  answer = [foundAt("10.0.0.3", 7480)];
  await pass(10_000);
  assert.is(found.at(-1), "10.0.0.3:7480");
  assert.ok(entries.some(({ kind }) => kind === "discovery.recovered"));
  stop();
  answer = [foundAt("10.0.0.4", 7480)];
  await pass(10_000);
  assert.is(found.length, 3);
});

test("the system's resolver is asked by default", async () => {
  const clock = manualClock();
  const { promise, resolve } = Promise.withResolvers<readonly Address[]>();
  const stop = resolver({ clock, journal: new Journal(clock) })(
    { hostname: "localhost", port: 7480 },
    resolve,
  );
  assert.ok((await promise).every(({ host, port }) => port === 7480 && /^(127\.0\.0\.1|::1)$/.test(host)));
  stop();
});

test.run();
