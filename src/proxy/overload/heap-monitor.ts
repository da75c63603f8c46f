/** V8's heap: reports its size after each full collection, and runs a full collection on request. */
import { PerformanceObserver } from "node:perf_hooks";
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Bytes of the heap limit that are reserved for the buffers of one turn of the event loop, and for V8 itself. */
const heapReserveBytes = 16 * 2 ** 20;

/** perf_hooks' constant for a full collection (NODE_PERFORMANCE_GC_MAJOR). */
const fullCollection = 4;

/**
 * Size of a V8 semi-space, set by bin/watchkeeper.js or by the user; default: V8's in Node 26. V8 reads NODE_OPTIONS first, and of
 * several values the last one holds. The young generation has three semi-spaces.
 */
const semiSpaceMiB = Number(
  [process.env["NODE_OPTIONS"] ?? "", ...process.execArgv]
    .join(" ")
    .matchAll(/max[-_]semi[-_]space[-_]size=(\d+)/g)
    .toArray()
    .at(-1)?.[1] ?? 32,
);

/** Returns the maximum size of the old generation, which contains the live objects. V8 aborts when it is full. */
function roomBytes(): number {
  return getHeapStatistics().heap_size_limit - 3 * semiSpaceMiB * 2 ** 20 - heapReserveBytes;
}

export type HeapState = {
  /** Size of the live objects as a share of the old generation's maximum size. */
  readonly share: number;
  /** Number of bytes of the machine's memory that the heap takes. */
  readonly residentBytes: number;
};

/**
 * Calls `report` after each full collection. Returns its stop function.
 *
 * Also turns off the rule by which V8 aborts a process before its heap is full: when 95 % of the old generation are
 * live and four full collections in succession took more than 60 % of the time (Heap::IsIneffectiveMarkCompact). Load
 * shedding begins near that size, and on a machine without idle processors collections take that long, so V8 would end
 * the process while its load is being shed. V8 still aborts when the old generation is full.
 */
export function monitorHeap(report: (heap: HeapState) => void): () => void {
  setFlagsFromString("--no-detect-ineffective-gcs-near-heap-limit");
  const observer = new PerformanceObserver((list) => {
    if (!list.getEntries().some(isFull)) return;
    const { used_heap_size: liveBytes, total_physical_size: residentBytes } = getHeapStatistics();
    report({ share: liveBytes / roomBytes(), residentBytes });
  });
  observer.observe({ entryTypes: ["gc"] });
  return () => observer.disconnect();
}

function isFull(entry: object): boolean {
  const detail = "detail" in entry ? entry.detail : undefined;
  return typeof detail === "object" && detail !== null && "kind" in detail && detail.kind === fullCollection;
}

/** The type of gc() in a process that was started with --expose-gc. */
type Collect = NonNullable<typeof globalThis.gc>;

let made: Collect | undefined;

/** Returns V8's gc(). The flag that provides it is set at run time, so only a context created after that has gc(). */
function make(): Collect {
  setFlagsFromString("--expose-gc");
  const found: unknown = runInNewContext("gc");
  if (!isCollect(found)) throw new Error("V8 has no gc()");
  return found;
}

function isCollect(found: unknown): found is Collect {
  return typeof found === "function";
}

/**
 * Runs a full collection that returns free pages to the kernel. The process stops during the collection: for 70 ms with
 * 150 MiB of live objects. V8 itself runs such a collection only when its heap grows or the process is nearly idle,
 * which after a peak may take a hundred seconds.
 */
export function collect(): void {
  made ??= make();
  made({ type: "major", flavor: "last-resort", execution: "sync" });
}
