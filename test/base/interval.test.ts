import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Interval } from "../../src/base/interval.ts";
import { manualClock } from "../support/clock.ts";

const test = suite("looks");

test("it looks again and again until it is stopped, and may be started anew", () => {
  const clock = manualClock();
  const seen: number[] = [];
  const looks = new Interval(clock, 1000, () => seen.push(clock.now()));
  const begun = clock.now();
  looks.start();
  looks.start();
  clock.advance(3500);
  looks.stop();
  clock.advance(5000);
  looks.start();
  clock.advance(1000);
  assert.equal(
    seen.map((at) => at - begun),
    [1000, 2000, 3000, 9500],
  );
});

test("a look may stop it", () => {
  const clock = manualClock();
  let count = 0;
  const looks = new Interval(clock, 1000, () => {
    count += 1;
    looks.stop();
  });
  looks.start();
  clock.advance(5000);
  assert.is(count, 1);
});

test("a look that fails is not the last one", () => {
  const clock = manualClock();
  let count = 0;
  const looks = new Interval(clock, 1000, () => {
    count += 1;
    throw new Error("a fault of the proxy");
  });
  looks.start();
  assert.throws(() => clock.advance(1000));
  assert.throws(() => clock.advance(1000));
  assert.is(count, 2);
});

test.run();
