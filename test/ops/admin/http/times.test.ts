import { suite } from "uvu";
import * as assert from "uvu/assert";
import { timesOf } from "../../../../src/ops/admin/http/times.ts";
import { manualClock } from "../../../support/clock.ts";

const test = suite("ops/admin/http/times");

test("a clock reading is a time of day and an age; -1 is neither", () => {
  const clock = manualClock();
  clock.advance(10_000);
  const { timeOf, ageOf, now } = timesOf(clock);
  assert.is(now(), 10_000);
  assert.is(Date.parse(timeOf(4000)), clock.wall() - 6000);
  assert.match(timeOf(4000), /T\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.equal([ageOf(4000.4), ageOf(-1)], [6000, null]);
});

test("one reading is one time, however the clocks' fractions fall, until the wall clock is set", () => {
  const clock = manualClock();
  const base = clock.wall();
  let ms = 1000.6;
  let setMs = 0;
  const real = { ...clock, now: () => ms, wall: () => base + Math.floor(ms + 0.3) + setMs };
  const { timeOf } = timesOf(real);
  const seen = new Set<string>();
  for (; ms < 1010; ms += 0.37) seen.add(timeOf(1000.2));
  assert.is(seen.size, 1);
  const [first = ""] = seen;
  setMs = 60_000;
  assert.is(Math.round((Date.parse(timeOf(1000.2)) - Date.parse(first)) / 1000), 60);
});

test.run();
