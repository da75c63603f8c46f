import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Clock } from "../../src/base/clock.ts";
import { TokenBucket } from "../../src/base/token-bucket.ts";
import { watchLimits } from "../../src/watch/limits.ts";
import { manualClock } from "../support/clock.ts";

const test = suite("base/token-bucket");

/** Returns how many of `tries` attempts the bucket permits. */
function taken(budget: TokenBucket, tries: number): number {
  let count = 0;
  for (let at = 0; at < tries; at++) if (budget.take()) count += 1;
  return count;
}

test("a burst passes at once and no more until time has passed", () => {
  const clock = manualClock();
  const budget = new TokenBucket(clock, 10, 5);
  assert.is(taken(budget, 100), 10);
  clock.advance(1000);
  assert.is(taken(budget, 100), 5);
});

test("a steady excess gets the rate that it is allowed, not nothing", () => {
  const clock = manualClock();
  const budget = new TokenBucket(clock, 10, 5);
  taken(budget, 10);
  let count = 0;
  for (let second = 0; second < 60; second++) {
    clock.advance(1000);
    count += taken(budget, 50);
  }
  assert.is(count, 300);
});

test("long quiet fills it to the burst and not beyond", () => {
  const clock = manualClock();
  const budget = new TokenBucket(clock, 10, 5);
  taken(budget, 20);
  clock.advance(3_600_000);
  assert.is(taken(budget, 100), 10);
});

test("a bonus lets it go into debt, which time pays back", () => {
  const clock = manualClock();
  const budget = new TokenBucket(clock, 10, 5);
  let count = 0;
  while (budget.take(1, 20)) count += 1;
  assert.is(count, 30);
  clock.advance(2000);
  assert.not(budget.take());
  clock.advance(3000);
  assert.ok(budget.take());
});

test("what is earned is bounded, and outlasts no spending (A4)", () => {
  const clock = manualClock();
  const budget = new TokenBucket(clock, 10, 0);
  for (let at = 0; at < 1_000_000; at++) budget.earn(20, 100);
  assert.is(taken(budget, 1000), 100);
  budget.earn(20, 100);
  assert.is(taken(budget, 1000), 20);
});

/** The token bucket of migrations. It slows down when a backend refuses watches (D6). */
const movesBucket = (clock: Clock): TokenBucket =>
  new TokenBucket(clock, watchLimits.moveBurst, watchLimits.movesPerSecond);

/**
 * Returns how many tokens are granted in each of these time spans, with a request every 10 ms, as the migrations make
 * them.
 */
function takenBy(seconds: readonly number[], slowAt: readonly number[] = []): number[] {
  const clock = manualClock();
  const pace = movesBucket(clock);
  while (pace.take());
  return seconds.map((second) => {
    if (slowAt.includes(second)) pace.slowDown(watchLimits.movesPerSecondLeast);
    let count = 0;
    for (let tick = 0; tick < 100; tick += 1) {
      clock.advance(10);
      while (pace.take()) count += 1;
    }
    return count;
  });
}

test("a hundred go at once, then five thousand each second", () => {
  const pace = movesBucket(manualClock());
  let count = 0;
  while (pace.take()) count += 1;
  assert.is(count, watchLimits.moveBurst);
  for (const per of takenBy([0, 1, 2]))
    assert.ok(Math.abs(per - watchLimits.movesPerSecond) <= 1, String(per));
});

test("a backend that says it is too much halves the pace, which comes back in seconds", () => {
  const [first = 0, second = 0, , , , , seventh = 0] = takenBy([0, 1, 2, 3, 4, 5, 6], [0]);
  assert.ok(first > 2000 && first < 3000, String(first));
  assert.ok(second > first && second < 3750, String(second));
  assert.ok(Math.abs(seventh - watchLimits.movesPerSecond) <= 1, String(seventh));
});

test("it never stands still, however often it is told", () => {
  const clock = manualClock();
  const pace = movesBucket(clock);
  for (let index = 0; index < 100; index += 1) pace.slowDown(watchLimits.movesPerSecondLeast);
  clock.advance(1000 / watchLimits.movesPerSecondLeast);
  assert.ok(pace.take());
  assert.not(pace.take());
});

test("whether one may go is told without taking", () => {
  const clock = manualClock();
  const pace = movesBucket(clock);
  assert.equal([pace.isOpen, pace.isOpen, pace.take()], [true, true, true]);
  while (pace.take());
  assert.not(pace.isOpen);
  clock.advance(10);
  assert.ok(pace.isOpen);
});

test.run();
