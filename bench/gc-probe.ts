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
  /** Memory of buffers, which lies outside the heap. */
  readonly outsideBytes: number;
  readonly rssBytes: number;
  /** How many resources of each type keep the event loop alive (timers, sockets, servers), by Node's type names. */
  readonly resources: Readonly<Record<string, number>>;
  /** The 99th percentile of the event loop's delay since the start, without the forced collections. */
  readonly loopP99Ms: number;
  readonly uncaught: number;
};

const path = process.env["WATCHKEEPER_GC_PROBE"];
// The histogram holds the time between two ticks of a 1 ms timer. So a value of 1 ms means no delay, and only what
// exceeds it is delay.
const loop = monitorEventLoopDelay({ resolution: 1 });
let uncaught = 0;
process.on("uncaughtExceptionMonitor", () => uncaught++);
process.on("unhandledRejection", () => uncaught++);

function probe(): Probed {
  loop.disable();
  const rssBytes = process.memoryUsage.rss();
  // Collects twice: the second collection frees what the finalizers of the first have released.
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
  // The socket may exist already: bin/watchkeeper.js replaces its own process to set Node's flags, and then this file
  // is loaded a second time.
  rmSync(path, { force: true });
  createServer((socket) => socket.end(`${JSON.stringify(probe())}\n`))
    .listen(path)
    .unref();
}
