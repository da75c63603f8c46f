import { detectionBounds, Histogram, overheadBounds, rttBounds } from "../../src/base/histogram.ts";
import { Journal } from "../../src/events/journal.ts";
import type { ClusterView, LiveCluster, Process } from "../../src/ops/admin/metrics/metric.ts";
import { Metrics } from "../../src/ops/admin/metrics/registry.ts";
import { manualClock } from "./clock.ts";

type Figures = Partial<Omit<ClusterView, "path">> & { readonly path?: Partial<LiveCluster["path"]> };

function detections(): LiveCluster["path"]["backends"]["detections"] {
  return { suspect: new Histogram(detectionBounds), dead: new Histogram(detectionBounds) };
}

/** Returns an idle cluster for the metrics. `figures` overrides single values. */
export function clusterWith({ path = {}, ...figures }: Figures = {}): ClusterView {
  return {
    label: "",
    upgrades: { openCount: 0 },
    passthrough: { counts: new Map(), bytes: { sent: 0, received: 0 } },
    backends: {
      record: undefined,
      addressOf: (name) => ({ name, host: "127.0.0.1", port: 1, tls: undefined }),
    },
    backendStatuses: [],
    leases: [],
    ...figures,
    path: {
      admission: { waiting: 0 },
      backends: { views: [], detections: detections() },
      pools: { poolOf: () => undefined },
      exchanges: {
        active: () => 0,
        counts: [],
        durations: new Map(),
        ends: { complete: 0, client_gone: 0, backend_gone: 0, refused: 0 },
        watched: { events: new Map(), bytes: 0, versionRegressions: 0, states: new Map() },
      },
      hedges: { counts: { all: [] }, wins: { first: 0, hedge: 0 } },
      overhead: {
        histograms: {
          request: new Histogram(overheadBounds),
          queued: new Histogram(overheadBounds),
          response: new Histogram(overheadBounds),
        },
      },
      pending: { size: 0 },
      limits: { own: [], refused: new Map() },
      shields: { refused: 0 },
      migrations: {
        moves: new Map(),
        moveDurations: new Map(),
        ends: new Map(),
        lives: { hedges: { all: [] } },
        refreshes: 0,
        sentinels: 0,
        waiting: 0,
        stalls: 0,
      },
      detectors: { sentinels: { count: 0 } },
      origins: { counts: { custom: 0, aggregated: 0, unknown: 0 } },
      refresher: { progressRequests: { answered: 0, refused: 0, unanswered: 0 } },
      staleReadGuard: { counts: { outdated: 0, demanded: 0, refused: 0 } },
      ledgerTap: { ledger: { size: 0, programs: new Map() }, leases: { all: [] } },
      avoidedApis: { counts: new Map() },
      caches: { watched: [], writeDelays: { histograms: new Map() } },
      measurementsOf: () => ({
        version: "v1.36.1",
        watchLagMs: undefined,
        watchDelay: undefined,
        unreachableApis: [],
        pingP99Ms: 0,
        suspectMs: 0,
        isDrained: false,
        shield: { cap: 0, waiting: 0, refused: 0 },
        pings: undefined,
        load: {
          streams: 0,
          requestsActive: 0,
          requestsPerSecond: 0,
          getMs: 0,
          listMs: 0,
          activity: 0,
          utilization: undefined,
          capacity: 1,
          refusals: 0,
        },
        probes: { answers: 0, failures: 0, lastMs: 0, durations: new Histogram(rttBounds) },
      }),
      ...path,
    },
  };
}

/** Returns an idle process with one cluster for the metrics. `figures` overrides single values. */
export function processWith(figures: Partial<Process> = {}): Process {
  return {
    version: "0.1.0",
    clusters: () => [clusterWith()],
    sessions: () => ({ h2: 0, h1: 0 }),
    handshakeErrors: () => 0,
    fullestSourceShare: () => 0,
    queuedBytes: () => 0,
    config: () => ({ isGood: true, loadedAtMs: 1_800_000_000_000, waiting: ["health"] }),
    certificates: () => [],
    droppedLogLines: () => 0,
    traceSpans: () => ({ exported: 0, failed: 0, dropped: 0 }),
    operatorLimits: { all: [] },
    replicas: { rows: [{ state: "live" }], count: 1 },
    incidents: { counts: [], active: [] },
    clock: manualClock(),
    ...figures,
  };
}

/** Returns the metrics of an idle process in the text format. */
export function idleScrape(): Promise<string> {
  return new Metrics(new Journal(manualClock()), processWith()).text();
}
