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

test("a bucket keeps its latest request as exemplar, and a sum of histograms the latest of both", () => {
  const [histogram, other] = [new Histogram([1, 2]), new Histogram([1, 2])];
  histogram.observe(0.5);
  assert.is(histogram.exemplarOf(0), undefined);
  for (const [at, auditId] of ["a", "b", "c"].entries()) histogram.observe(0.5 + at / 4, auditId, 10 + at);
  histogram.observe(5, "d", 20);
  assert.equal(histogram.exemplarOf(0), { auditId: "c", value: 1, at: 12 });
  assert.is(histogram.exemplarOf(1), undefined);
  other.observe(0.25, "e", 15);
  other.observe(9, "f", 15);
  for (const sum of [histogram.plus(other), other.plus(histogram)]) {
    assert.equal(sum.exemplarOf(0), { auditId: "e", value: 0.25, at: 15 });
    assert.equal(sum.exemplarOf(2), { auditId: "d", value: 5, at: 20 });
  }
});

test.run();
