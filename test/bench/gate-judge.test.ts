import { suite } from "uvu";
import * as assert from "uvu/assert";
import { boundsOf, judge } from "../../bench/gate-judge.ts";

const test = suite("bench/gate-judge");

/** Returns ratios around `middle`. The highest and the lowest differ by `spread` × `middle`. */
function around(middle: number, spread: number, count = 8): number[] {
  return Array.from({ length: count }, (_, at) => middle * (1 + spread * (at / (count - 1) - 0.5)));
}

test("the bounds contain the median with at least 90 %, by the binomial distribution", () => {
  const numbered = (count: number): number[] => Array.from({ length: count }, (_, at) => at + 1);
  assert.equal(boundsOf(numbered(8)), [2, 7]);
  assert.equal(boundsOf(numbered(16).toReversed()), [5, 12]);
  assert.equal(boundsOf(numbered(3)), [1, 3]);
  assert.equal(boundsOf([7]), [7, 7]);
});

test("a ratio passes up to a tenth above the recorded one, and fails beyond that", () => {
  assert.is(judge(around(1.2, 0.05), 0.1, 1.2), "passed");
  assert.is(judge(around(1.31, 0.05), 0.1, 1.2), "passed");
  assert.is(judge(around(1.34, 0.05), 0.1, 1.2), "failed");
  assert.is(judge(around(0.9, 0.05), 0.1, 1.2), "passed");
});

test("one disturbed pair decides nothing", () => {
  assert.is(judge([...around(1.2, 0.05, 7), 3], 0.1, 1.2), "passed");
  assert.is(judge([...around(1.4, 0.05, 7), 0.5], 0.1, 1.2), "failed");
});

test("nothing is judged while others use the machine, or if the ratios scatter", () => {
  assert.is(judge(around(2, 0.05), 0.6, 1.2), "not judged");
  assert.is(judge(around(2, 0.5), 0.1, 1.2), "not judged");
  assert.is(judge(around(1, 0.5), 0.1, 1.2), "not judged");
  assert.is(judge([Number.NaN], 0.1, 1.2), "not judged");
});

test.run();
