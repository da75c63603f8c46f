import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { Pace } from "../../../src/watch/migration/pace.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("proxy/pace");

/** How many go in each of these spans, asked for every 10 ms as Migrations does. */
function taken(seconds: readonly number[], slowAt: readonly number[] = []): number[] {
  const clock = manualClock();
  const pace = new Pace(clock);
  while (pace.take());
  return seconds.map((second) => {
    if (slowAt.includes(second)) pace.slowDown();
    let count = 0;
    for (let tick = 0; tick < 100; tick += 1) {
      clock.advance(10);
      while (pace.take()) count += 1;
    }
    return count;
  });
}

test("a hundred go at once, then a thousand each second", () => {
  const pace = new Pace(manualClock());
  let count = 0;
  while (pace.take()) count += 1;
  assert.is(count, limits.moveBurst);
  for (const per of taken([0, 1, 2])) assert.ok(Math.abs(per - limits.movesPerSecond) <= 1, String(per));
});

test("a backend that says it is too much halves the pace, which comes back in seconds", () => {
  const [first = 0, second = 0, , , , , seventh = 0] = taken([0, 1, 2, 3, 4, 5, 6], [0]);
  assert.ok(first > 400 && first < 600, String(first));
  assert.ok(second > first && second < 750, String(second));
  assert.ok(Math.abs(seventh - limits.movesPerSecond) <= 1, String(seventh));
});

test("it never stands still, however often it is told", () => {
  const clock = manualClock();
  const pace = new Pace(clock);
  for (let index = 0; index < 100; index += 1) pace.slowDown();
  clock.advance(1000 / limits.movesPerSecondLeast);
  assert.ok(pace.take());
  assert.not(pace.take());
});

test("whether one may go is told without taking", () => {
  const clock = manualClock();
  const pace = new Pace(clock);
  assert.equal([pace.isOpen, pace.isOpen, pace.take()], [true, true, true]);
  while (pace.take());
  assert.not(pace.isOpen);
  clock.advance(10);
  assert.ok(pace.isOpen);
});

test.run();
