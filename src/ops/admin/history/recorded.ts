/**
 * Collects what a step of the history records about the requests of one process. A worker sends this data to its parent
 * as JSON.
 */
import type { Clock } from "../../../base/clock.ts";
import { buckets } from "../../../base/histogram.ts";
import { inSlices } from "../../../base/slices.ts";
import type { ActiveRequests, RequestCount } from "../../../proxy/request/active-requests.ts";
import { clientKinds } from "../../ledger/client-kind.ts";
import type { BackendStatus } from "../metrics/metric.ts";

export type RecordedCluster = {
  readonly backends: () => readonly (Pick<BackendStatus, "name" | "state" | "pingP99Ms" | "watchDelay"> & {
    readonly load: Pick<BackendStatus["load"], "streams">;
  })[];
  readonly exchanges: Pick<ActiveRequests, "live" | "counts" | "latencies" | "watched">;
};

/**
 * The open requests at one backend. `streams`: number of open requests of each kind of client, in the order of
 * `clientKinds`.
 */
export type Open = { watches: number; readonly streams: number[] };

export type Recorded = {
  /** Counts of ended requests since the process began. */
  readonly counts: readonly RequestCount[];
  /**
   * By backend: latencies, as `LatencyCounts`, of the plain requests (neither watches nor long-running) that have ended
   * since the process began.
   */
  readonly latencies: readonly (readonly [backend: string, counts: readonly number[]])[];
  readonly watchEvents: number;
  readonly open: readonly (readonly [backend: string, Open])[];
  /**
   * By backend: the longest time, in ms, from a write until the backend's watches deliver the write's event. Backends
   * without this measurement are omitted.
   */
  readonly delays: readonly (readonly [backend: string, delayMs: number])[];
  /** By backend: the load that this process causes, in open streams. */
  readonly loads: readonly (readonly [backend: string, streams: number])[];
};

/**
 * Calls `done` with the data of these clusters. Counts open requests in time slices, because there may be 50,000. If
 * one slice suffices, calls `done` before it returns, so that the data describe the moment at which the step ends. A
 * promise would always resolve later.
 */
export function record(
  clusters: readonly RecordedCluster[],
  clock: Clock,
  done: (all: Recorded) => void,
): void {
  const open = new Map<string, Open>();
  inSlices(
    clock,
    clusters.flatMap(({ exchanges }) => exchanges.live),
    ({ backend, context: { kind, caller } }) => {
      const counts = openOf(open, backend);
      if (kind === "watch") counts.watches += 1;
      const at = clientKinds.indexOf(caller.kind);
      counts.streams[at] = (counts.streams[at] ?? 0) + 1;
    },
    () => done({ ...endedIn(clusters), open: Array.from(open) }),
  );
}

function endedIn(clusters: readonly RecordedCluster[]): Omit<Recorded, "open"> {
  const backends = clusters.flatMap((cluster) => cluster.backends());
  return {
    counts: clusters.flatMap(({ exchanges }) => exchanges.counts),
    latencies: clusters.flatMap(({ exchanges }) =>
      Array.from(exchanges.latencies, ([backend, counts]) => [backend, Array.from(counts.copy())] as const),
    ),
    watchEvents: clusters
      .flatMap(({ exchanges }) => [...exchanges.watched.events.values()])
      .reduce((sum, events) => sum + events, 0),
    delays: backends.flatMap(({ name, watchDelay }) =>
      watchDelay === undefined ? [] : [[name, watchDelay.delayMs] as const],
    ),
    loads: backends.map(({ name, load }) => [name, load.streams] as const),
  };
}

/** Returns the sums of what several processes have recorded. Of several delays, the longest is kept. */
export function sumOfRecorded(all: readonly Recorded[]): Recorded {
  const [only, ...others] = all;
  if (only !== undefined && others.length === 0) return only;
  const latencies = new Map<string, number[]>();
  const open = new Map<string, Open>();
  const delays = new Map<string, number>();
  for (const recorded of all) {
    for (const [backend, counts] of recorded.latencies) addTo(latencies, backend, counts);
    for (const [backend, { watches, streams }] of recorded.open) {
      const sum = openOf(open, backend);
      sum.watches += watches;
      for (const [at, count] of streams.entries()) sum.streams[at] = (sum.streams[at] ?? 0) + count;
    }
    for (const [backend, delayMs] of recorded.delays)
      delays.set(backend, Math.max(delayMs, delays.get(backend) ?? 0));
  }
  return {
    counts: all.flatMap(({ counts }) => counts),
    latencies: Array.from(latencies),
    watchEvents: all.reduce((sum, { watchEvents }) => sum + watchEvents, 0),
    open: Array.from(open),
    delays: Array.from(delays),
    loads: Array.from(loadsOf(all)),
  };
}

function loadsOf(all: readonly Recorded[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const [backend, streams] of all.flatMap(({ loads }) => loads))
    sums.set(backend, streams + (sums.get(backend) ?? 0));
  return sums;
}

function addTo(sums: Map<string, number[]>, backend: string, counts: readonly number[]): void {
  const before = sums.get(backend);
  sums.set(
    backend,
    Array.from({ length: buckets }, (_none, at) => (before?.[at] ?? 0) + (counts[at] ?? 0)),
  );
}

function openOf(all: Map<string, Open>, backend: string): Open {
  const known = all.get(backend) ?? { watches: 0, streams: clientKinds.map(() => 0) };
  all.set(backend, known);
  return known;
}
