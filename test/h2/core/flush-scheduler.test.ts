import { suite } from "uvu";
import * as assert from "uvu/assert";
import { FlushScheduler } from "../../../src/h2/core/flush-scheduler.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("h2/core/flush-scheduler");

test("nothing is flushed before the turn's end, then all in the order in which they became dirty", () => {
  const clock = manualClock();
  const turn = new FlushScheduler(clock);
  const flushed: string[] = [];
  for (const name of ["a", "b", "c"]) turn.mark({ flush: () => void flushed.push(name) });
  assert.equal(flushed, []);
  clock.turn();
  assert.equal(flushed, ["a", "b", "c"]);
  clock.turn();
  assert.is(flushed.length, 3);
});

test("many sessions cost one callback a turn", () => {
  let callbacks = 0;
  const clock = manualClock();
  const turn = new FlushScheduler({ ...clock, soon: () => void (callbacks += 1) });
  for (let at = 0; at < 100; at++) turn.mark({ flush() {} });
  assert.is(callbacks, 1);
});

test("what becomes dirty during a flush is flushed in a turn of its own", () => {
  const clock = manualClock();
  const turn = new FlushScheduler(clock);
  let flushes = 0;
  const again = { flush: () => void (flushes++ === 0 && turn.mark(again)) };
  turn.mark(again);
  clock.turn();
  assert.is(flushes, 2);
});

test("a session whose flush throws keeps no other from being flushed", () => {
  const clock = manualClock();
  const turn = new FlushScheduler(clock);
  let flushes = 0;
  const good = { flush: () => void (flushes += 1) };
  const bad = {
    flush() {
      throw new Error("broken");
    },
  };
  for (const one of [good, bad, good, good]) turn.mark(one);
  assert.throws(() => clock.turn(), "broken");
  clock.turn();
  assert.is(flushes, 3);
});

test.run();
