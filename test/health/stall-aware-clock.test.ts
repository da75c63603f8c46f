import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../src/base/limits.ts";
import { StallAwareClock, stallAwareTimeout } from "../../src/health/stall-aware-clock.ts";
import { manualClock } from "../support/clock.ts";

const test = suite("health/stall-aware-clock");

test("it is over when the time is, and once", () => {
  const clock = manualClock();
  let count = 0;
  stallAwareTimeout(clock, 900, () => (count += 1));
  clock.advance(899);
  assert.is(count, 0);
  clock.advance(10_000);
  assert.is(count, 1);
});

test("time in which the proxy's own loop stood still does not count (F11)", () => {
  const clock = manualClock();
  let overAt = 0;
  stallAwareTimeout(clock, 900, () => (overAt = clock.now()));
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
    stallAwareTimeout({ ...clock, after }, 900 + at / 11, () => (count += 1));
    clock.advance(2_000);
  }
  assert.is(count, 1_000);
});

test("it can be undone", () => {
  const clock = manualClock();
  stallAwareTimeout(clock, 900, () => assert.unreachable())();
  clock.advance(2000);
});

test("a stall-aware clock stands still while the proxy's own loop does, and never goes back", () => {
  const clock = manualClock();
  const patient = new StallAwareClock(clock);
  patient.start();
  clock.advance(1000);
  assert.is(patient.now(), 1000);
  clock.stall(5000);
  const stalled = patient.now();
  assert.ok(stalled >= 1000 && stalled <= 1250 + limits.stallMs, String(stalled));
  clock.advance(0);
  assert.ok(patient.now() >= stalled);
  clock.advance(1000);
  assert.ok(patient.now() >= 2000 && patient.now() <= 2250 + limits.stallMs, String(patient.now()));
  let before = patient.now();
  for (let index = 0; index < 5000; index += 1) {
    if (index % 7 === 0) clock.stall((index % 90) * 5);
    else clock.advance(index % 31);
    assert.ok(patient.now() >= before);
    before = patient.now();
  }
});

test("it waits for time in which the loop ran", () => {
  const clock = manualClock();
  const patient = new StallAwareClock(clock);
  let overAt = 0;
  patient.after(900, () => (overAt = clock.now()));
  clock.advance(300);
  clock.stall(2000);
  clock.advance(5000);
  assert.ok(overAt >= 2650 && overAt <= 3150, String(overAt));
});

test("once stopped it leaves no timer behind, and sees no stall", () => {
  const clock = manualClock();
  let timers = 0;
  const after = (ms: number, run: () => void): (() => void) => {
    timers += 1;
    const stop = clock.after(ms, run);
    return () => {
      timers -= 1;
      stop();
    };
  };
  const patient = new StallAwareClock({ ...clock, after });
  patient.start();
  patient.start();
  patient.stop();
  assert.is(timers, 0);
  clock.stall(5000);
  assert.is(patient.now(), 5000);
});

test.run();
