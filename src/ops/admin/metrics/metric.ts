/** The types of a metric's declaration, and of the parts of the proxy from which the values are read. */
import type { Clock } from "../../../base/clock.ts";
import type { Histogram } from "../../../base/histogram.ts";
import type { Entry, EntryOf } from "../../../events/journal.ts";
import type { BackendSet } from "../../../proxy/cluster/backend-set.ts";
import type { BackendMeasurements, DataPath } from "../../../proxy/cluster/data-path.ts";
import type { Passthrough } from "../../../proxy/tunnel/passthrough.ts";
import type { Sample } from "./exposition.ts";

export type Process = {
  readonly version: string;
  /** Returns all clusters, including those that are being removed. */
  readonly clusters: () => readonly LiveCluster[];
  readonly sessions: () => { readonly h2: number; readonly h1: number };
  readonly handshakeErrors: () => number;
  readonly fullestSourceShare: () => number;
  readonly queuedBytes: () => number;
  readonly config: () => {
    readonly isGood: boolean;
    readonly loadedAtMs: number;
    /** Names of the settings that have changed in the configuration file and take effect only after a restart. */
    readonly waiting: readonly string[];
  };
  readonly certificates: () => readonly CertificateFacts[];
  readonly droppedLogLines: () => number;
  /** Number of spans by the result of their export. */
  readonly traceSpans: () => { readonly exported: number; readonly failed: number; readonly dropped: number };
  readonly operatorLimits: { readonly all: readonly unknown[] };
  readonly replicas: {
    readonly rows: readonly { readonly state: string }[];
    /** The number of replicas that share limits. */
    readonly count: number;
  };
  /** Returns the state of each worker of this process; default: the process has no workers. */
  readonly workerStates?: (() => readonly string[]) | undefined;
  readonly incidents: {
    readonly counts: readonly (IncidentFacts & { readonly count: number })[];
    readonly active: readonly IncidentFacts[];
  };
  readonly clock: Clock;
};

/**
 * `cluster`: label of the cluster that the incident is about; undefined or "": it is about none, or only one cluster
 * exists.
 */
type IncidentFacts = { readonly kind: string; readonly backend: string; readonly cluster?: string };

export type CertificateFacts = {
  readonly purpose: string;
  readonly name: string;
  readonly notAfterMs: number;
  /** Label of the cluster that uses the certificate; undefined or "": none uses it, or only one cluster exists. */
  readonly cluster?: string;
};

type PoolFacts = {
  readonly shards: readonly {
    readonly key: { readonly trust: string; readonly kind: string };
    readonly connections: readonly { readonly openCount: number }[];
  }[];
};

type LiveLease = Pick<DataPath["ledgerTap"]["leases"]["all"][number], "name" | "holder" | "renewedAt"> & {
  readonly verdictAt: (now: number) => { readonly verdict: string } | undefined;
  readonly renewers: readonly { readonly caller: { readonly address: string } }[];
};

export type LiveCluster = {
  /** Value of the label `cluster`, and prefix of the cluster's backend names; "" if there is only one cluster. */
  readonly label: string;
  readonly path: {
    readonly admission: Pick<DataPath["admission"], "waiting">;
    readonly backends: Pick<DataPath["backends"], "detections"> & {
      readonly views: readonly { readonly name: string; readonly state: string }[];
    };
    readonly pools: { readonly poolOf: (backend: string) => PoolFacts | undefined };
    readonly exchanges: Pick<DataPath["exchanges"], "active" | "counts" | "durations" | "ends" | "watched">;
    readonly hedges: Pick<DataPath["hedges"], "wins"> & {
      readonly counts: Pick<DataPath["hedges"]["counts"], "all">;
    };
    readonly overhead: Pick<DataPath["overhead"], "histograms">;
    readonly pending: Pick<DataPath["pending"], "size">;
    readonly limits: Pick<DataPath["limits"], "own" | "refused">;
    readonly shields: Pick<DataPath["shields"], "refused">;
    readonly migrations: Pick<
      DataPath["migrations"],
      "moves" | "moveDurations" | "ends" | "refreshes" | "sentinels" | "waiting" | "stalls"
    > & {
      readonly lives: { readonly hedges: Pick<DataPath["migrations"]["lives"]["hedges"], "all"> };
    };
    readonly detectors: { readonly sentinels: Pick<DataPath["detectors"]["sentinels"], "count"> };
    readonly origins: Pick<DataPath["origins"], "counts">;
    readonly refresher: Pick<DataPath["refresher"], "progressRequests">;
    readonly staleReadGuard: Pick<DataPath["staleReadGuard"], "counts">;
    readonly ledgerTap: {
      readonly ledger: Pick<DataPath["ledgerTap"]["ledger"], "size"> & {
        readonly programs: ReadonlyMap<
          string,
          { readonly counts: readonly (readonly [verb: string, count: number])[] }
        >;
      };
      readonly leases: { readonly all: readonly LiveLease[] };
    };
    readonly avoidedApis: Pick<DataPath["avoidedApis"], "counts">;
    readonly caches: {
      readonly writeDelays: Pick<DataPath["caches"]["writeDelays"], "histograms">;
      readonly watched: readonly Pick<
        DataPath["caches"]["watched"][number],
        "backend" | "resource" | "watches"
      >[];
    };
    readonly measurementsOf: (backend: string) => BackendMeasurements;
  };
  readonly upgrades: { readonly openCount: number };
  readonly passthrough: Pick<Passthrough, "counts" | "bytes">;
  readonly backends: Pick<BackendSet, "record" | "addressOf">;
};

export type BackendStatus = BackendMeasurements & {
  readonly name: string;
  readonly state: string;
  readonly connections: readonly {
    readonly trust: string;
    readonly kind: string;
    readonly open: number;
    readonly streams: number;
  }[];
};

export type LeaseFacts = {
  readonly namespace: string;
  readonly name: string;
  readonly holder: string;
  readonly source: string;
  readonly renewedAtMs: number;
  readonly verdict: string;
};

/** A cluster, with the data that several metrics use. The data are collected once for each scrape. */
export type ClusterView = LiveCluster & {
  readonly backendStatuses: readonly BackendStatus[];
  readonly leases: readonly LeaseFacts[];
};

/**
 * One number if the metric has no labels, otherwise rows. If the metric has one label, a row may have the label's value
 * itself in place of an array.
 */
export type Values = number | Iterable<Sample | readonly [label: string, value: number]>;

/** For each kind of journal entry that the metric counts: a function that returns the labels of an entry. */
export type Counted = {
  readonly [K in Entry["kind"]]?: (entry: EntryOf<K>) => readonly string[];
};

/**
 * The source of a metric's values. Values with equal labels are added up. Values that are read from a cluster, or
 * counted from a cluster's journal entries, get the label `cluster` if there are several clusters.
 */
type Source =
  | { readonly process: (process: Process) => Values }
  /**
   * Read from each cluster at each scrape. When a cluster is removed, its counters are kept with "other" in the labels
   * `cluster` and `backend`, because a counter must not decrease.
   */
  | { readonly cluster: (cluster: ClusterView) => Values }
  /** Counted from journal entries. This is for events that are too rare to need a counter in the request path. */
  | { readonly counted: Counted };

/**
 * How the values of the main process and of its workers are combined. "sum", "max", "min": over all these processes.
 * "own": only the value of the main process is used, because it already covers the workers. Default: "sum" for values
 * of clusters, "own" for all others.
 */
export type Across = "sum" | "max" | "min" | "own";

export type Metric = Source & {
  readonly across?: Across;
  /** Name without the prefix `watchkeeper_`. OpenMetrics requires that only the names of counters end in `_total`. */
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
  /** Maximum number of series; default: `backendCap` with the only label `backend`, else `limits.familySeries`. */
  readonly cap?: number;
};

export type HistogramMetric = {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  readonly cap: number;
  readonly cluster: (cluster: LiveCluster) => Iterable<readonly [labels: readonly string[], Histogram]>;
};
