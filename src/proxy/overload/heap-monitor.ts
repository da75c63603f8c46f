/** Tells after each full collection how much of the heap's limit is live, but for a reserve, and what its pages take. */
import { PerformanceObserver } from "node:perf_hooks";
import { getHeapStatistics } from "node:v8";
import { limits } from "../../base/limits.ts";

/** perf_hooks' word for a full collection (NODE_PERFORMANCE_GC_MAJOR). */
const fullCollection = 4;

/** The young space is three times this: as bin/watchkeeper.js says it, else what V8 takes where there is memory enough. */
const semiSpaceMiB = Number(/semi-space-size=(\d+)/.exec(process.execArgv.join(" "))?.[1] ?? 64);

/** What lives is in the old space, and V8 gives up when that is full, whatever else is free. It tells the sum of both. */
function roomBytes(): number {
  return getHeapStatistics().heap_size_limit - 3 * semiSpaceMiB * 2 ** 20 - limits.heapReserveBytes;
}

/** As a full collection has left the heap. */
export type HeapState = {
  /** Of what there is room for. */
  readonly share: number;
  /** What its pages take of the machine's memory. */
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

/** Node's types know an entry's detail of some kinds only. */
function isFull(entry: object): boolean {
  const detail = "detail" in entry ? entry.detail : undefined;
  return typeof detail === "object" && detail !== null && "kind" in detail && detail.kind === fullCollection;
}
