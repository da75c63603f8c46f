/** The live objects of one cluster as plain numbers, and the numbers of several as if they were one. */
import type { Clock } from "../../base/clock.ts";
import type { Histogram } from "../../base/histogram.ts";
import type { BackendSet } from "../../proxy/cluster/backend-set.ts";
import type { Path } from "../../proxy/cluster/path.ts";
import type { Passthrough } from "../../proxy/tunnel/passthrough.ts";
import type { PoolSet } from "../../proxy/upstream/pool-set.ts";
import type { Snapshot } from "./family.ts";

/** What is looked at of a cluster. */
export type LiveCluster = {
  /** How it is told beside others; "" for the only one. */
  readonly label: string;
  readonly path: Pick<
    Path,
    | "admission"
    | "backends"
    | "pools"
    | "exchanges"
    | "hedges"
    | "hold"
    | "migrations"
    | "sentinels"
    | "origins"
    | "refresher"
    | "timeTravel"
    | "talk"
  > &
    Pick<Path, "caches" | "detectors">;
  readonly splices: { readonly openCount: number };
  readonly passthrough: Pick<Passthrough, "counts" | "bytes">;
  readonly backends: Pick<BackendSet, "record" | "addressOf">;
};

/** What of a snapshot is a cluster's. */
export type ClusterFigures = Pick<
  Snapshot,
  | "backends"
  | "exchanges"
  | "requests"
  | "resets"
  | "watchEvents"
  | "watchEventBytes"
  | "watches"
  | "passthrough"
  | "hedges"
  | "heldRequests"
  | "discovery"
  | "clients"
  | "locks"
  | "durations"
>;

export function clusterFigures(cluster: LiveCluster, clock: Clock): ClusterFigures {
  const { label, path, splices, passthrough, backends: set } = cluster;
  const { exchanges, hedges, hold, talk } = path;
  const { events, bytes } = exchanges.watched;
  const { record } = set;
  return {
    backends: path.backends.views.map(({ name, state }) => ({
      name,
      state,
      lanes: lanesOf(path.pools, name),
      ...path.detectors(name),
    })),
    exchanges: [
      { kind: "plain", active: exchanges.active("plain") },
      { kind: "watch", active: exchanges.active("watch") },
      { kind: "long-running", active: exchanges.active("long-running") },
      { kind: "upgrade", active: splices.openCount },
    ],
    requests: exchanges.counts.map((one) => ({ ...one, backend: backendIn(label, one.backend) })),
    resets: Object.entries(exchanges.ends).map(([reason, count]) => ({ reason, count })),
    watchEvents: events,
    watchEventBytes: bytes,
    watches: watchesOf(path),
    passthrough: { counts: passthrough.counts, bytes: passthrough.bytes },
    hedges: hedges.count,
    heldRequests: hold.size + path.admission.waiting,
    discovery: record === undefined ? [] : [{ cluster: label, ...record }],
    clients: { count: talk.ledger.size, requests: talk.ledger.requestsByAgent },
    locks: locksOf(cluster, clock),
    durations: exchanges.durations,
  };
}

/** Of a request for which none was chosen, or one that is gone, at least whose it was. */
function backendIn(label: string, backend: string): string {
  return label === "" || backend.startsWith(`${label}/`) ? backend : `${label}/${backend}`;
}

function watchesOf({
  exchanges,
  migrations: all,
  timeTravel,
  refresher: bookmarks,
  sentinels,
  origins,
}: LiveCluster["path"]): Snapshot["watches"] {
  const { states, violations } = exchanges.watched;
  const { moves, ends, hedges, refreshes, waiting, stalls } = all;
  return {
    states,
    waiting,
    moves,
    ends,
    hedges,
    refreshes,
    progressRequests: bookmarks.progressRequests,
    sentinels: sentinels.count,
    sentinelLegs: all.sentinels,
    origins: origins.counts,
    violations,
    stalls,
    timeTravel: timeTravel.counts,
  };
}

function lanesOf(upstreams: PoolSet, backend: string): Snapshot["backends"][number]["lanes"] {
  return (upstreams.poolOf(backend)?.shards ?? []).map(({ key, connections }) => ({
    trust: key.trust,
    kind: key.kind,
    open: connections.length,
    streams: connections.reduce((sum, lane) => sum + lane.openCount, 0),
  }));
}

/** Each node renews a lease of its own: 5,000 of them tell nobody anything. */
function locksOf({ label, path: { talk } }: LiveCluster, clock: Clock): Snapshot["locks"] {
  const now = clock.now();
  return talk.locks.all
    .filter(({ name }) => name.namespace !== "kube-node-lease")
    .map((lock) => ({
      namespace: label === "" ? lock.name.namespace : `${label}/${lock.name.namespace}`,
      name: lock.name.name,
      holder: lock.holder,
      source: lock.renewers.at(-1)?.caller.address ?? "",
      renewedAtMs: clock.wall() - (now - lock.renewedAt),
      verdict: lock.verdictAt(now)?.verdict ?? "ok",
    }));
}

/** Rows are put together as they are: of equal labels the metrics show the sum. */
export function summed(all: readonly ClusterFigures[]): ClusterFigures {
  const [only] = all;
  if (only !== undefined && all.length === 1) return only;
  const add = (of: (figures: ClusterFigures) => number): number =>
    all.reduce((sum, figures) => sum + of(figures), 0);
  const join = <T>(of: (figures: ClusterFigures) => readonly T[]): readonly T[] => all.flatMap(of);
  return {
    backends: join(({ backends }) => backends),
    exchanges: join(({ exchanges }) => exchanges),
    requests: join(({ requests }) => requests),
    resets: join(({ resets }) => resets),
    watchEvents: add(({ watchEvents }) => watchEvents),
    watchEventBytes: add(({ watchEventBytes }) => watchEventBytes),
    watches: watchesIn(all.map(({ watches }) => watches)),
    passthrough: {
      counts: added(all.map(({ passthrough }) => passthrough.counts)),
      bytes: {
        sent: add(({ passthrough }) => passthrough.bytes.sent),
        received: add(({ passthrough }) => passthrough.bytes.received),
      },
    },
    hedges: add(({ hedges }) => hedges),
    heldRequests: add(({ heldRequests }) => heldRequests),
    discovery: join(({ discovery }) => discovery),
    clients: {
      count: add(({ clients }) => clients.count),
      requests: added(all.map(({ clients }) => clients.requests)),
    },
    locks: join(({ locks }) => locks),
    durations: durationsIn(all.map(({ durations }) => durations)),
  };
}

function watchesIn(all: readonly Snapshot["watches"][]): Snapshot["watches"] {
  const add = (of: (watches: Snapshot["watches"]) => number): number =>
    all.reduce((sum, watches) => sum + of(watches), 0);
  return {
    states: added(all.map(({ states }) => states)),
    waiting: add(({ waiting }) => waiting),
    moves: added(all.map(({ moves }) => moves)),
    ends: added(all.map(({ ends }) => ends)),
    hedges: add(({ hedges }) => hedges),
    refreshes: add(({ refreshes }) => refreshes),
    progressRequests: {
      answered: add(({ progressRequests }) => progressRequests.answered),
      refused: add(({ progressRequests }) => progressRequests.refused),
      unanswered: add(({ progressRequests }) => progressRequests.unanswered),
    },
    sentinels: add(({ sentinels }) => sentinels),
    sentinelLegs: add(({ sentinelLegs }) => sentinelLegs),
    origins: {
      custom: add(({ origins }) => origins.custom),
      aggregated: add(({ origins }) => origins.aggregated),
      unknown: add(({ origins }) => origins.unknown),
    },
    violations: add(({ violations }) => violations),
    stalls: add(({ stalls }) => stalls),
    timeTravel: {
      outdated: add(({ timeTravel }) => timeTravel.outdated),
      demanded: add(({ timeTravel }) => timeTravel.demanded),
      refused: add(({ timeTravel }) => timeTravel.refused),
    },
  };
}

function added(maps: readonly ReadonlyMap<string, number>[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const map of maps) for (const [key, count] of map) sums.set(key, (sums.get(key) ?? 0) + count);
  return sums;
}

function durationsIn(maps: readonly ReadonlyMap<string, Histogram>[]): ReadonlyMap<string, Histogram> {
  const sums = new Map<string, Histogram>();
  for (const map of maps) for (const [verb, histogram] of map) sums.set(verb, histogram.plus(sums.get(verb)));
  return sums;
}

const nothing: ReadonlyMap<string, number> = new Map();

/** What is left of a cluster that has gone: what it has counted, for a counter never falls, and nothing that it is. */
export function past(figures: ClusterFigures): ClusterFigures {
  const { requests, resets, watches, passthrough, clients } = figures;
  const byKey = new Map<string, ClusterFigures["requests"][number]>();
  for (const { verb, code, count } of requests) {
    const key = `${verb} ${code}`;
    byKey.set(key, { verb, code, backend: "other", count: (byKey.get(key)?.count ?? 0) + count });
  }
  const ends = added(resets.map(({ reason, count }) => new Map([[reason, count]])));
  return {
    ...figures,
    backends: [],
    exchanges: [],
    requests: [...byKey.values()],
    resets: Array.from(ends, ([reason, count]) => ({ reason, count })),
    watches: { ...watches, states: nothing, waiting: 0, stalls: 0 },
    passthrough: { counts: nothing, bytes: { ...passthrough.bytes } },
    heldRequests: 0,
    discovery: [],
    clients: { count: 0, requests: clients.requests },
    locks: [],
  };
}
