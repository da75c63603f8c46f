/**
 * A whole proxy in its own process, so that a test can measure what an attack costs it and can detect a crash.
 * proxy-process.ts starts it with the options as its argument. It reports its state on request.
 */
import { getHeapStatistics } from "node:v8";
import { limits } from "../../src/base/limits.ts";
import { type ProxyOptions, startProxy } from "./proxy.ts";

export type ChildOptions = Omit<ProxyOptions, "backends" | "isFollowing"> & {
  /** Overrides values of src/base/limits.ts, for tests of limits that take minutes to reach. */
  readonly limits?: Partial<Record<keyof typeof limits, number>>;
};

/** The first message of the process: the addresses of the proxy. */
export type ChildPlace = {
  readonly port: number;
  readonly plainPort: number;
  readonly adminPort: number;
  /** The ports of all listeners by name. */
  readonly ports: Readonly<Record<string, number>>;
  readonly ca: string;
  /** Address of the JSON API: "127.0.0.1:…". */
  readonly apiAddress: string;
  /** The folder of the configuration and the certificates. The proxy reloads them when they change. */
  readonly directory: string;
};

export type ChildState = {
  readonly rssBytes: number;
  readonly heapBytes: number;
  readonly exchanges: number;
  /** Errors inside the proxy that it has contained, as "scope: message". */
  readonly faults: readonly string[];
  /** The reasons for which client sessions were refused. */
  readonly refusals: readonly string[];
  readonly failures: readonly string[];
  /** The reasons for which upstream connections have ended. */
  readonly connectionsClosed: readonly string[];
  readonly connectionsOpened: number;
  /** Number of members of Object.prototype: twelve, unless hostile input has polluted it. */
  readonly members: number;
  /** The longest time in ms that the event loop was blocked since the previous report. */
  readonly stalledMs: number;
  /** The wall clock of the process, and the CPU time that it has used, in ms. */
  readonly wallMs: number;
  readonly cpuMs: number;
};

const options = JSON.parse(process.argv[2] ?? "{}") as ChildOptions;
Object.assign(limits, options.limits);
const proxy = await startProxy({ ...options, backends: 0, isFollowing: true });
let stalledMs = 0;
let tickedAt = performance.now();
let cpuMs = cpuNow();
setInterval(() => {
  const now = performance.now();
  const cpu = cpuNow();
  // Time in which the process had no CPU does not count as blocked.
  stalledMs = Math.max(stalledMs, Math.min(now - tickedAt - 10, cpu - cpuMs));
  tickedAt = now;
  cpuMs = cpu;
}, 10);

function cpuNow(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** The latest RSS that could be read. Reading it needs a file descriptor. */
let rss = 0;
function rssNow(): number {
  try {
    rss = process.memoryUsage.rss();
  } catch {
    // EMFILE: one test uses up all descriptors.
  }
  return rss;
}

/** Returns what process.memoryUsage() does, without the values for which it opens a file. */
function getHeapAndBuffers(): { readonly heapUsed: number; readonly external: number } {
  const { used_heap_size: heapUsed, external_memory: external } = getHeapStatistics();
  return { heapUsed, external };
}

function stateNow(): ChildState {
  globalThis.gc?.();
  const { entries } = proxy;
  const { heapUsed, external } = getHeapAndBuffers();
  const stalled = stalledMs;
  stalledMs = 0;
  tickedAt = performance.now();
  return {
    rssBytes: rssNow(),
    heapBytes: heapUsed + external,
    exchanges: proxy.running.exchanges.size,
    faults: entries.flatMap((entry) =>
      entry.kind === "internal.error" ? [`${entry.scope}: ${entry.message}`] : [],
    ),
    refusals: entries.flatMap((entry) =>
      entry.kind === "downstream_connection.refused" ? [entry.reason] : [],
    ),
    failures: entries.flatMap((entry) => (entry.kind === "request.failed" ? [entry.message] : [])),
    connectionsClosed: entries.flatMap((entry) =>
      entry.kind === "upstream_connection.closed" ? [entry.reason] : [],
    ),
    connectionsOpened: entries.filter((entry) => entry.kind === "upstream_connection.opened").length,
    members: Object.getOwnPropertyNames(Object.prototype).length,
    stalledMs: stalled,
    wallMs: Date.now(),
    cpuMs: cpuNow(),
  };
}

process.on("message", (word) => {
  if (word === "state") process.send?.(stateNow());
  else void proxy.stop().then(() => process.exit(0));
});
process.on("disconnect", () => process.exit(0));
process.send?.({
  port: proxy.port,
  plainPort: proxy.plainPort,
  ports: Object.fromEntries(
    Array.from(proxy.running.addresses, ([name, address]) => [name, Number(address.split(":").at(-1))]),
  ),
  adminPort: Number(proxy.running.adminAddress.split(":").at(-1)),
  ca: proxy.ca,
  apiAddress: proxy.running.apiAddress,
  directory: proxy.directory,
} satisfies ChildPlace);
