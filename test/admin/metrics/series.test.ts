import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Series } from "../../../src/admin/metrics/series.ts";
import { limits } from "../../../src/base/limits.ts";

const test = suite("admin/metrics/series");

test("equal labels are summed, and rows keep the order in which they came", () => {
  const series = new Series();
  series.add(["a", "b"], 1);
  series.add(["ab", ""], 2);
  series.add(["a", "b"], 3);
  assert.equal(series.rows, [
    [["a", "b"], 4],
    [["ab", ""], 2],
  ]);
});

test("beyond the cap new labels are summed under other, and old ones still count (A54)", () => {
  const series = new Series(3);
  for (let index = 0; index < 1000; index++) series.add([`client-${index}`], 1);
  series.add(["client-1"], 1);
  assert.equal(series.rows, [
    [["client-0"], 1],
    [["client-1"], 2],
    [["other"], 998],
  ]);
});

test("a label is clipped", () => {
  const series = new Series();
  series.add(["x".repeat(1 << 20)], 1);
  assert.is(series.rows[0]?.[0][0]?.length, limits.labelChars);
});

test.run();
