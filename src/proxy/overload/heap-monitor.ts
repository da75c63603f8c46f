/**
 * Reports after each full collection the share of the heap's limit that is live, without a reserve, and its resident
 * pages.
 */
import { PerformanceObserver } from "node:perf_hooks";
import { getHeapStatistics } from "node:v8";
import { limits } from "../../base/limits.ts";

/** perf_hooks' constant for a full collection (NODE_PERFORMANCE_GC_MAJOR). */
const fullCollection = 4;

/** The young space is three times this: as set in bin/watchkeeper.js, else V8's default with enough memory. */
const semiSpaceMiB = Number(/semi-space-size=(\d+)/.exec(process.execArgv.join(" "))?.[1] ?? 64);

/** Live objects are in the old space, and V8 aborts when that is full, whatever else is free. V8 reports the sum of both. */
function roomBytes(): number {
  return getHeapStatistics().heap_size_limit - 3 * semiSpaceMiB * 2 ** 20 - limits.heapReserveBytes;
}

/** The heap after a full collection. */
export type HeapState = {
  /** The live share of the available room. */
  readonly share: number;
  /** The machine's memory that its pages take. */
  readonly residentBytes: number;
};

/** Returns its stop function. */
export function monitorHeap(tell: (heap: HeapState) => void): () => void {
  const observer = new PerformanceObserver((list) => {
    if (!list.getEntries().some(isFull)) return;
    const { used_heap_size: liveBytes, total_physical_size: residentBytes } = getHeapStatistics();
    tell({ share: liveBytes / roomBytes(), residentBytes });
  });
  observer.observe({ entryTypes: ["gc"] });
  return () => observer.disconnect();
}

/** Node's types declare an entry's detail for some kinds only. */
function isFull(entry: object): boolean {
  const detail = "detail" in entry ? entry.detail : undefined;
  return typeof detail === "object" && detail !== null && "kind" in detail && detail.kind === fullCollection;
}
