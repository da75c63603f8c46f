import { mock } from "node:test";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../src/base/clock.ts";

const test = suite("clock");

test.before.each(() => mock.timers.enable({ apis: ["setTimeout"] }));
test.after.each(() => mock.timers.reset());

const days = (count: number): number => count * 86_400_000;

/** Sets a timer of `ms`. Returns how often it has fired by each of these days. */
function runs(ms: number, onDays: readonly number[]): number[] {
  let count = 0;
  let day = 0;
  wallClock.after(ms, () => {
    count += 1;
  });
  return onDays.map((next) => {
    // Advances one day at a time: the mock sets a timer that begins during one tick at the end of that tick.
    for (; day < next; day += 1) mock.timers.tick(days(1));
    return count;
  });
}

test("a wait of more than a timer's 2^31 - 1 ms is waited for whole (Node would run it after 1 ms)", () => {
  assert.equal(runs(days(20), [19, 20, 100]), [0, 1, 1]);
  // The clock sets three timers in a row. In this mock, each begins only at the end of a day.
  assert.equal(runs(days(60), [1, 24, 25, 59, 63, 400]), [0, 0, 0, 0, 1, 1]);
  assert.equal(runs(Number.POSITIVE_INFINITY, [1, 400]), [0, 0]);
});

test("it can be cancelled at any time", () => {
  for (const day of [0, 30, 60]) {
    let count = 0;
    const cancel = wallClock.after(days(90), () => {
      count += 1;
    });
    for (let passed = 0; passed < day; passed += 1) mock.timers.tick(days(1));
    cancel();
    for (let passed = 0; passed < 365; passed += 1) mock.timers.tick(days(1));
    assert.is(count, 0);
  }
});

test.run();
