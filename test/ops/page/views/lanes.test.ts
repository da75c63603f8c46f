import { suite } from "uvu";
import * as assert from "uvu/assert";
import { placed } from "../../../../src/ops/page/views/lanes.js";
import { pathOf, topOf } from "../../../../src/ops/page/views/strip.js";
import { incident, now, timeAt } from "../../../support/page.ts";

const test = suite("ops/page/views/lanes");
const axis = { now, from: now - 3_600_000, to: now };
const at = (id: number, agoMs: number, untilMs: number | undefined): ReturnType<typeof incident> =>
  incident({ id, startedAt: timeAt(agoMs), endedAt: untilMs === undefined ? null : timeAt(untilMs) });

test("incidents whose bars or labels would overlap are in different rows", () => {
  const bars = placed(
    [at(3, 60_000, undefined), at(2, 3_000_000, 2_900_000), at(1, 3_100_000, 3_050_000)],
    axis,
  );
  assert.equal(
    bars.map(({ incident: { id }, row }) => [id, row]),
    [
      [1, 0],
      [2, 1],
      [3, 0],
    ],
  );
  assert.is(bars[2]?.end, now, "an active incident lasts until now");
  assert.ok(bars[2]?.isLate, "its label is before the end of its bar");
});

test("incidents outside the time axis are omitted, and so are those beyond the last row", () => {
  assert.equal(placed([at(1, 9_000_000, 8_000_000), at(2, -5_000, undefined)], axis), []);
  const many = Array.from({ length: 9 }, (_, index) => at(index, 1_000_000, undefined));
  assert.is(placed(many, axis).length, 4);
});

test("a line has a gap where there are no values, and a value between two gaps is a dot", () => {
  assert.is(pathOf([0, 5, null, 10], 10), "M0 100.0h0L1 50.0M3 0.0h0");
  assert.is(pathOf([20], 10), "M0 0.0h0", "not above the chart");
  assert.is(topOf([[1, null], [7]], 2), 7);
  assert.is(topOf([[null]], 2), 2);
});

test.run();
