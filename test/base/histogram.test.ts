import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Histogram, requestBounds } from "../../src/base/histogram.ts";

const test = suite("histogram");

test("each value is counted under the first bound that it does not pass", () => {
  const histogram = new Histogram([1, 2]);
  for (const value of [0, 1, 1.5, 2, 3]) histogram.observe(value);
  assert.equal([histogram.counts, histogram.sum, histogram.count], [[2, 2, 1], 7.5, 5]);
});

test("the bounds ascend", () => {
  assert.equal(
    requestBounds.toSorted((a, b) => a - b),
    requestBounds,
  );
});

test.run();
