import { suite } from "uvu";
import * as assert from "uvu/assert";
import { healthLimits } from "../../src/health/limits.ts";
import { ReadLatency } from "../../src/health/read-latency.ts";

const test = suite("health/read-latency");

/** A ReadLatency after `count` reads of `ms` milliseconds, for each pair. */
function readsOf(...taken: readonly (readonly [count: number, ms: number])[]): ReadLatency {
  const reads = new ReadLatency();
  for (const [count, ms] of taken) for (let index = 0; index < count; index += 1) reads.add(ms);
  return reads;
}

test("patience is what a missed PING is given where reads are quick, and twice the p99 where they are not", () => {
  assert.is(readsOf().hedgeAfterMs(500), 500);
  assert.is(readsOf([1000, 3]).hedgeAfterMs(500), 500);
  assert.is(readsOf([1000, 3]).hedgeAfterMs(5600), 5600, "far away");
  const slow = readsOf([1000, 800]).hedgeAfterMs(500);
  assert.ok(slow >= 1600 && slow <= 2000, String(slow));
});

test("a few slow reads among many quick ones do not make it wait: one in a hundred is asked twice at most", () => {
  assert.is(readsOf([1000, 3], [9, 4000]).hedgeAfterMs(500), 500);
  assert.ok(readsOf([1000, 3], [20, 4000]).hedgeAfterMs(500) >= 8000);
});

test("what was slow minutes ago does not count", () => {
  const reads = readsOf([100, 4000]);
  reads.fade(600_000);
  for (let index = 0; index < 100; index += 1) reads.add(3);
  assert.is(reads.hedgeAfterMs(500), 500);
});

test("one read that another backend had to answer is nothing; several in a row are evidence, with the longest wait", () => {
  const reads = new ReadLatency();
  const waits = Array.from({ length: healthLimits.hungReads }, (_, index) => 700 - index);
  const evidence = waits.map((ms) => reads.lostHedge(ms, 500));
  assert.equal(evidence, [
    ...waits.slice(1).map(() => undefined),
    { kind: "reads-hanging", count: healthLimits.hungReads, ms: 700, limitMs: 500 },
  ]);
  assert.is(reads.lostHedge(600, 500)?.kind, "reads-hanging", "told again for as long as it lasts");
});

test("any that comes back in between begins the row anew, and is evidence itself only after such a row", () => {
  const reads = new ReadLatency();
  for (let round = 0; round < 10; round += 1) {
    assert.is(reads.lostHedge(600, 500), undefined);
    assert.ok(reads.isDoubted);
    assert.is(reads.proven(), undefined);
    assert.not(reads.isDoubted);
  }
  for (let count = 0; count < healthLimits.hungReads; count += 1) reads.lostHedge(600, 500);
  assert.equal(reads.proven(), { kind: "reads-answer" });
  assert.is(reads.proven(), undefined);
});

test.run();
