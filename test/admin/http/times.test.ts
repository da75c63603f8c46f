import { suite } from "uvu";
import * as assert from "uvu/assert";
import { timesOf } from "../../../src/admin/http/times.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("admin/http/times");

test("a clock reading is a time of day and an age; -1 is neither", () => {
  const clock = manualClock();
  clock.advance(10_000);
  const { timeOf, ageOf, now } = timesOf(clock);
  assert.is(now(), 10_000);
  assert.is(Date.parse(timeOf(4000)), clock.wall() - 6000);
  assert.match(timeOf(4000), /T\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.equal([ageOf(4000.4), ageOf(-1)], [6000, null]);
});

test.run();
