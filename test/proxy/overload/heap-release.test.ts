import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { HeapRelease } from "../../../src/proxy/overload/heap-release.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("proxy/overload/heap-release");

function scene() {
  const clock = manualClock();
  let count = 0;
  const pages = new HeapRelease(clock, () => void (count += 1));
  /** How often pages went back, once collections have left so many MiB, one after the other. */
  const after = (...residentMiB: readonly number[]): number => {
    for (const each of residentMiB) {
      pages.look({ residentBytes: each * 2 ** 20 });
      pages.beat();
    }
    return count;
  };
  return { clock, after };
}

test("a heap that is less than half of what it was has its pages go back, from 48 MiB on", () => {
  assert.is(scene().after(40, 80, 40), 0);
  assert.is(scene().after(40, 119, 50), 1);
  assert.is(scene().after(600, 301), 0);
  assert.is(scene().after(600, 299), 1);
});

test("once for each time that it was full, and once a minute", () => {
  const { clock, after } = scene();
  assert.is(after(200, 40), 1);
  assert.is(after(40, 41), 1, "what was full is full no more");
  assert.is(after(200, 40), 1, "too early");
  clock.advance(limits.heapPagesMs);
  assert.is(after(40), 2, "late, but not forgotten");
});

test.run();
