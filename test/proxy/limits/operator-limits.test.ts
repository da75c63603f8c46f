import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Journal } from "../../../src/events/journal.ts";
import { OperatorLimits } from "../../../src/proxy/limits/operator-limits.ts";
import { type ManualClock, manualClock } from "../../support/clock.ts";

const test = suite("proxy/limits/operator-limits");
const alice = { by: "alice", reason: "" };

function limitsOf(clock: ManualClock): OperatorLimits {
  return new OperatorLimits(clock, new Journal(clock));
}

test("a worker has exactly the limits of its parent, and those that stay keep their counts", () => {
  const clock = manualClock();
  const [parent, worker] = [limitsOf(clock), limitsOf(clock)];
  parent.add({ users: ["jane"], rate: "5/s" }, alice, 60_000);
  parent.add({ users: ["joe"], rate: "1/s" }, alice, 1000);
  worker.follow(parent.state);
  assert.equal(
    worker.all.map((limit) => `${limit.name} ${String(limit)}`),
    ["1 user=jane, 5/s", "2 user=joe, 1/s"],
  );
  const [jane] = worker.all;
  jane?.begin();
  parent.remove("2", "alice");
  parent.add({ users: ["jill"], rate: "2/s" }, alice, 1000);
  worker.follow(parent.state);
  assert.equal(
    worker.all.map(({ name }) => name),
    ["1", "3"],
  );
  assert.is(worker.all[0], jane);
  assert.is(jane?.passed, 1);
});

test("a limit of the parent ends at its own time in the worker, and nonsense ends nothing else", () => {
  const clock = manualClock();
  const [parent, worker] = [limitsOf(clock), limitsOf(clock)];
  parent.add({ users: ["jane"], rate: "5/s" }, alice, 1000);
  worker.follow(parent.state);
  clock.advance(1000);
  assert.equal(worker.all, []);
  worker.follow("nonsense");
  worker.follow('{"limits":[{"written":{"name":7}},null]}');
  assert.equal(worker.all, []);
});

test.run();
