import { getHeapStatistics } from "node:v8";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { collect, type HeapState, monitorHeap } from "../../../src/proxy/overload/heap-monitor.ts";
import { within } from "../../support/within.ts";

const test = suite("proxy/overload/heap-monitor");

test("each full collection tells which share of the heap's limit is live", async () => {
  const told = Promise.withResolvers<HeapState>();
  const stop = monitorHeap(told.resolve);
  collect();
  const { share, residentBytes } = await within(5000, "a collection", told.promise);
  assert.ok(share > 0 && share < 0.5, String(share));
  assert.ok(residentBytes > 2 ** 20, String(residentBytes));
  stop();
});

/** What is resident of the heap, in MiB. */
const resident = (): number => getHeapStatistics().total_physical_size >> 20;

test("what is no longer used goes, and its pages with it", () => {
  collect();
  const before = resident();
  let kept: unknown[] = Array.from({ length: 400_000 }, (_, at) => ({ at, words: [at, at] }));
  collect();
  const height = resident();
  // Here and there one lives on.
  kept = kept.filter((_, at) => at % 1000 === 0);
  collect();
  const after = resident();
  assert.is(kept.length, 400);
  assert.ok(height - before > 16, `${before} MiB, ${height} at its height`);
  assert.ok(after - before < (height - before) / 4, `${before} MiB, ${height} at its height, ${after} after`);
});

test.run();
