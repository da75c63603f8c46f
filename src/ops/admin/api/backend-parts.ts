/** What a worker adds to the rows of `/api/v1/backends`: its own requests, connections and measurements. */
import type { BackendStatus } from "../metrics/metric.ts";

export type OpenRequestCounts = {
  readonly watches: number;
  readonly plain: number;
  readonly longRunning: number;
};

/**
 * A backend as one process has measured it. The backend's health state is not included, because only the main process
 * determines it.
 */
export type BackendPart = Pick<
  BackendStatus,
  "name" | "connections" | "pingP99Ms" | "watchLagMs" | "watchDelay" | "unreachableApis" | "load" | "shield"
> & {
  readonly openRequests: OpenRequestCounts;
  /** Resources whose watch cache has stalled. */
  readonly stalled: readonly string[];
};

export function partOf(
  status: BackendStatus,
  openRequests: OpenRequestCounts,
  stalled: readonly string[],
): BackendPart {
  const { name, connections, pingP99Ms, watchLagMs, watchDelay, unreachableApis, load, shield } = status;
  return {
    name,
    connections,
    pingP99Ms,
    watchLagMs,
    watchDelay,
    unreachableApis,
    load,
    shield,
    openRequests,
    stalled,
  };
}

/** Returns a backend as the main process (`own`) and its workers (`others`) together have measured it. */
export function withParts(own: BackendPart, others: readonly BackendPart[]): BackendPart {
  return others.filter(({ name }) => name === own.name).reduce(withPart, own);
}

function withPart(one: BackendPart, other: BackendPart): BackendPart {
  return {
    ...one,
    connections: connectionsOf([...one.connections, ...other.connections]),
    watchLagMs: mostOf(one.watchLagMs, other.watchLagMs),
    watchDelay:
      (other.watchDelay?.delayMs ?? -1) > (one.watchDelay?.delayMs ?? -1) ? other.watchDelay : one.watchDelay,
    unreachableApis: [...new Set([...one.unreachableApis, ...other.unreachableApis])],
    stalled: [...new Set([...one.stalled, ...other.stalled])],
    load: loadOf(one.load, other.load),
    shield: {
      cap: one.shield.cap + other.shield.cap,
      waiting: one.shield.waiting + other.shield.waiting,
      refused: one.shield.refused + other.shield.refused,
    },
    openRequests: {
      watches: one.openRequests.watches + other.openRequests.watches,
      plain: one.openRequests.plain + other.openRequests.plain,
      longRunning: one.openRequests.longRunning + other.openRequests.longRunning,
    },
  };
}

/** Of each pair of times, the longer one is kept, because an average would hide it. */
function loadOf(one: BackendPart["load"], other: BackendPart["load"]): BackendPart["load"] {
  return {
    requestsActive: one.requestsActive + other.requestsActive,
    requestsPerSecond: one.requestsPerSecond + other.requestsPerSecond,
    activity: one.activity + other.activity,
    streams: one.streams + other.streams,
    refusals: one.refusals + other.refusals,
    getMs: Math.max(one.getMs, other.getMs),
    listMs: Math.max(one.listMs, other.listMs),
    utilization: mostOf(one.utilization, other.utilization),
    capacity: Math.min(one.capacity, other.capacity),
  };
}

function mostOf(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Math.max(one, other);
}

function connectionsOf(all: BackendPart["connections"]): BackendPart["connections"] {
  const sums = new Map<string, BackendPart["connections"][number]>();
  for (const one of all) {
    const key = `${one.trust} ${one.kind}`;
    const { open = 0, streams = 0 } = sums.get(key) ?? {};
    sums.set(key, { ...one, open: open + one.open, streams: streams + one.streams });
  }
  return Array.from(sums.values());
}
