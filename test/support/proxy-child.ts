/**
 * A whole proxy in a process of its own, so that what an attack costs it can be measured and a crash is seen for what
 * it is. Started by proxy-process.ts with the options as its argument; tells its state when asked.
 */
import { getHeapStatistics } from "node:v8";
import { limits } from "../../src/base/limits.ts";
import { type ProxyOptions, startProxy } from "./proxy.ts";

export type ChildOptions = Omit<ProxyOptions, "backends" | "isFollowing"> & {
  /** Other values of src/base/limits.ts, for rows whose own takes minutes. */
  readonly limits?: Partial<Record<keyof typeof limits, number>>;
};

/** Where it can be reached; its first message. */
export type ChildPlace = {
  readonly port: number;
  readonly plainPort: number;
  readonly adminPort: number;
  /** Of every listener, by its name. */
  readonly ports: Readonly<Record<string, number>>;
  readonly ca: string;
  /** "127.0.0.1:…" of the JSON API. */
  readonly apiAddress: string;
  /** Its configuration and its certificates, which it reads again when they change. */
  readonly directory: string;
};

export type ChildState = {
  readonly rssBytes: number;
  readonly heapBytes: number;
  readonly exchanges: number;
  /** Contained faults, as "ring: message". */
  readonly faults: readonly string[];
  /** Why sessions were refused. */
  readonly refusals: readonly string[];
  readonly failures: readonly string[];
  /** Upstream connections that ended, by the reason. */
  readonly connectionsClosed: readonly string[];
  readonly connectionsOpened: number;
  /** Members of Object.prototype: twelve, unless a message has polluted it. */
  readonly members: number;
  /** The longest that its loop was busy at a time since it was asked last. */
  readonly stalledMs: number;
  /** What it takes for the time of day, and the processor time that it has used. */
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
  // While others had the processor it did not stand still, it was not there.
  stalledMs = Math.max(stalledMs, Math.min(now - tickedAt - 10, cpu - cpuMs));
  tickedAt = now;
  cpuMs = cpu;
}, 10);

function cpuNow(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Without a descriptor it cannot be read; then it is what it was. */
let rss = 0;
function rssNow(): number {
  try {
    rss = process.memoryUsage.rss();
  } catch {
    // EMFILE, on purpose in one test
  }
  return rss;
}

/** process.memoryUsage() without what needs a descriptor. */
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
