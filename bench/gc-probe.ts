/**
 * Reports the memory of a proxy under measurement. Node loads this file before the proxy (`--expose-gc --import`). It
 * answers each connection to the socket in WATCHKEEPER_GC_PROBE with one line of JSON: the live heap after a forced
 * collection, the number of timers, and the like.
 */
import { rmSync } from "node:fs";
import { createServer } from "node:net";
import { monitorEventLoopDelay } from "node:perf_hooks";

export type Probed = {
  readonly heapBytes: number;
  /** Buffers, beside the heap. */
  readonly outsideBytes: number;
  readonly rssBytes: number;
  /** What keeps the loop alive (timers, sockets, servers), by Node's names for them. */
  readonly resources: Readonly<Record<string, number>>;
  /** Since the start, without the forced collections. */
  readonly loopP99Ms: number;
  readonly uncaught: number;
};

const path = process.env["WATCHKEEPER_GC_PROBE"];
// The histogram holds the time between two ticks of a 1 ms timer: 1 ms is the floor, the rest is delay.
const loop = monitorEventLoopDelay({ resolution: 1 });
let uncaught = 0;
process.on("uncaughtExceptionMonitor", () => uncaught++);
process.on("unhandledRejection", () => uncaught++);

function probe(): Probed {
  loop.disable();
  const rssBytes = process.memoryUsage.rss();
  // Twice: the first run's finalizers free what the second collects.
  globalThis.gc?.();
  globalThis.gc?.();
  const { heapUsed: heapBytes, external: outsideBytes } = process.memoryUsage();
  const resources: Record<string, number> = {};
  for (const name of process.getActiveResourcesInfo()) resources[name] = (resources[name] ?? 0) + 1;
  const loopP99Ms = loop.percentile(99) / 1e6;
  loop.enable();
  return { heapBytes, outsideBytes, rssBytes, resources, loopP99Ms, uncaught };
}

if (path !== undefined) {
  loop.enable();
  // The proxy's bin begins anew with flags of its own, and this is loaded a second time.
  rmSync(path, { force: true });
  createServer((socket) => socket.end(`${JSON.stringify(probe())}\n`))
    .listen(path)
    .unref();
}
