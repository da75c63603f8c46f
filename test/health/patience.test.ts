import { suite } from "uvu";
import * as assert from "uvu/assert";
import { patiently } from "../../src/health/patience.ts";
import { manualClock } from "../support/clock.ts";

const test = suite("health/patience");

test("it is over when the time is, and once", () => {
  const clock = manualClock();
  let count = 0;
  patiently(clock, 900, () => (count += 1));
  clock.advance(899);
  assert.is(count, 0);
  clock.advance(10_000);
  assert.is(count, 1);
});

test("time in which our own loop stood still does not count (F11)", () => {
  const clock = manualClock();
  let overAt = 0;
  patiently(clock, 900, () => (overAt = clock.now()));
  clock.advance(300);
  clock.stall(2000);
  clock.advance(5000);
  assert.ok(overAt >= 2900 - 250 && overAt <= 2900 + 250, String(overAt));
});

test("what a rounding leaves is not waited for, for ever", () => {
  const clock = manualClock();
  let [timers, count] = [0, 0];
  const after = (ms: number, run: () => void): (() => void) => {
    timers += 1;
    if (timers > 100_000) throw new Error("Waits for ever");
    return clock.after(ms, run);
  };
  for (let at = 1; at <= 1_000; at += 1) {
    clock.advance(at / 7);
    patiently({ ...clock, after }, 900 + at / 11, () => (count += 1));
    clock.advance(2_000);
  }
  assert.is(count, 1_000);
});

test("it can be undone", () => {
  const clock = manualClock();
  patiently(clock, 900, () => assert.unreachable())();
  clock.advance(2000);
});

test.run();
