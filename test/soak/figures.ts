/** Everything that may leak, as numbers, and the comparison with a baseline. */
import { readdirSync, readlinkSync } from "node:fs";
import type { Stage } from "./stage.ts";

export type Figures = {
  /** V8 heap after a forced garbage collection. */
  readonly heapBytes: number;
  /** Buffers outside of the V8 heap. */
  readonly outsideBytes: number;
  readonly rssBytes: number;
  readonly timers: number;
  /** Open descriptors: `sockets` includes the internal pipes of the process, `others` is everything else. */
  readonly sockets: number;
  readonly others: number;
  readonly connections: number;
  readonly streams: number;
  readonly sessions: number;
  readonly plain: number;
  readonly watches: number;
  readonly tunnels: number;
  readonly passages: number;
  readonly buffered: number;
  /** Faults since the start of the process. */
  readonly contained: number;
  readonly uncaught: number;
};

export async function figuresOf(stage: Stage): Promise<Figures> {
  const text = await stage.metrics();
  const sum = (family: string, label = ""): number =>
    [...text.matchAll(new RegExp(`^watchkeeper_${family}(?:\\{([^}]*)\\})? (\\S+)$`, "gm"))]
      .filter(([, labels = ""]) => labels.includes(label))
      .reduce((total, [, , value]) => total + Number(value), 0);
  const { heapBytes, outsideBytes, rssBytes, resources, uncaught } = await stage.probed();
  return {
    heapBytes,
    outsideBytes,
    rssBytes,
    timers: resources["Timeout"] ?? 0,
    ...descriptorsOf(stage.pid),
    connections: sum("upstream_connections"),
    streams: sum("upstream_streams"),
    sessions: sum("downstream_connections"),
    plain: sum("requests_active", 'kind="plain"'),
    watches: sum("requests_active", 'kind="watch"'),
    tunnels: sum("requests_active", 'kind="long-running"'),
    passages: sum("passthrough_connections"),
    buffered: sum("buffered_bytes"),
    contained: sum("internal_errors_total"),
    uncaught,
  };
}

function descriptorsOf(pid: number): { readonly sockets: number; readonly others: number } {
  const targets = readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      return "gone meanwhile";
    }
  });
  const sockets = targets.filter((target) => target.startsWith("socket:")).length;
  return { sockets, others: targets.length - sockets };
}

const MiB = 2 ** 20;
/**
 * By how much each figure may exceed its baseline. The number of upstream connections depends on how the last fault
 * left the clients that stay. Health probes and requests of those clients may be under way.
 */
const slack: Readonly<Record<keyof Figures, number>> = {
  heapBytes: 4 * MiB,
  outsideBytes: 4 * MiB,
  rssBytes: 48 * MiB,
  timers: 12,
  sockets: 10,
  others: 0,
  connections: 6,
  streams: 6,
  sessions: 0,
  plain: 6,
  watches: 0,
  tunnels: 0,
  passages: 0,
  buffered: 64 * 1024,
  contained: 0,
  uncaught: 0,
};

/** Returns a line for each figure that exceeds its baseline by more than its slack. */
export function notBack(base: Figures, now: Figures): string[] {
  return (Object.keys(slack) as (keyof Figures)[])
    .filter((name) => now[name] > base[name] + slack[name])
    .map((name) => `${name}: ${base[name]} before, ${now[name]} now, at most ${slack[name]} more`);
}

export function line(figures: Figures): string {
  const { heapBytes, outsideBytes, rssBytes, ...counts } = figures;
  const memory = { heap: heapBytes, outside: outsideBytes, RSS: rssBytes };
  const told = Object.entries(memory).map(([name, bytes]) => `${name} ${(bytes / MiB).toFixed(1)} MiB`);
  return [...told, ...Object.entries(counts).map(([name, count]) => `${name} ${count}`)].join(", ");
}
