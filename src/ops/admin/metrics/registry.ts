/**
 * Answers scrapes by reading the plain fields in which the request path counts, so that counting costs almost nothing.
 * Only this file imports prom-client, for the metrics of the process itself.
 */
import { AggregatorRegistry, collectDefaultMetrics, Registry } from "prom-client";
import type { Entry, EntryOf, Journal } from "../../../events/journal.ts";
import { viewOf } from "./cluster-view.ts";
import {
  histogramText,
  isCounter,
  labelled,
  metricText,
  type Row,
  type Sample,
  Series,
  seriesKey,
} from "./exposition.ts";
import { histograms } from "./histogram-declarations.ts";
import { capOf } from "./labels.ts";
import type {
  ClusterView,
  Counted,
  HistogramMetric,
  LiveCluster,
  Metric,
  Process,
  Values,
} from "./metric.ts";
import { metrics } from "./metric-declarations.ts";
import { acrossOf, combined, type HistogramRow, histogramRows, type MetricsSnapshot } from "./snapshot.ts";

/** Metrics of prom-client that are removed, because each scrape would visit every open socket and delay requests. */
const expensive = ["handles", "requests", "resources"].flatMap((what) => [
  `nodejs_active_${what}`,
  `nodejs_active_${what}_total`,
]);

/**
 * A metric. `kept`: counts that no other object has, because they come from journal entries, removed clusters or ended
 * workers.
 */
type CountedMetric = { readonly metric: Metric; readonly kept: Series };

/** The metrics of this process's workers. */
export type WorkerMetrics = {
  /** Returns the latest snapshot of each worker. */
  readonly snapshots: () => readonly MetricsSnapshot[];
  /** Resolves with the metrics of each worker's own process, such as CPU time, as `processMetrics` returns them. */
  readonly processes: () => Promise<readonly object[]>;
};

const noWorkers: WorkerMetrics = { snapshots: () => [], processes: () => Promise.resolve([]) };

export class Metrics {
  readonly #process: Process;
  readonly #workers: WorkerMetrics;
  readonly #registry = new Registry();
  readonly #all: readonly CountedMetric[];
  /** The histograms of removed clusters and of ended workers. */
  readonly #past = new Map<HistogramMetric, readonly HistogramRow[]>();

  constructor(journal: Journal, process: Process, workers: WorkerMetrics = noWorkers) {
    this.#process = process;
    this.#workers = workers;
    collectDefaultMetrics({ register: this.#registry });
    for (const name of expensive) this.#registry.removeSingleMetric(name);
    this.#all = metrics.map((metric) => ({ metric, kept: new Series(capOf(metric)) }));
    journal.subscribe((entry) => {
      for (const { metric, kept } of this.#all) {
        const labels = "counted" in metric ? countedBy(metric.counted, entry.kind, entry) : undefined;
        if (labels !== undefined) kept.add(labelled(labels, 1, entry.cluster));
      }
    });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /**
   * Keeps the counters of a cluster that is being removed, because a counter must not decrease. The kept counters have
   * the value "other" in the labels `cluster` and `backend`.
   */
  gone(cluster: LiveCluster): void {
    const view = viewOf(cluster, this.#process.clock);
    for (const { metric, kept } of this.#all)
      if (isCounter(metric) && "cluster" in metric)
        for (const row of ofCluster(metric.labels, view, rowsOf(metric.cluster(view))))
          kept.add(anonymous(metric.labels, row));
    for (const metric of histograms) {
      const rows = histogramsIn(metric, cluster).map((row) => anonymous(metric.labels, row));
      this.#past.set(metric, [...merged([...this.#pastOf(metric), ...rows])]);
    }
  }

  /** Keeps the counts of a worker that has ended, because a counter must not decrease. */
  ended(snapshot: MetricsSnapshot): void {
    for (const { metric, kept } of this.#all)
      if (isCounter(metric) && acrossOf(metric) === "sum")
        for (const row of snapshot.samples[metric.name] ?? []) kept.add(row);
    const now = this.#process.clock.now();
    for (const metric of histograms)
      this.#past.set(metric, [...merged([...this.#pastOf(metric), ...histogramRows(metric, snapshot, now)])]);
  }

  /** Called in a worker. Returns the metrics that the parent combines with its own. */
  snapshot(): MetricsSnapshot {
    const views = this.#views();
    const now = this.#process.clock.now();
    const shared = this.#all.filter(({ metric }) => acrossOf(metric) !== "own");
    const samples = shared.map((one) => [one.metric.name, this.#ownRows(one, views)] as const);
    const rows = histograms.map(
      (metric) => [metric.name, views.flatMap((view) => histogramsIn(metric, view))] as const,
    );
    const plain = rows.map(
      ([name, all]) =>
        [name, all.map(([labels, one, cluster]) => labelled(labels, one.toPlain(now), cluster))] as const,
    );
    const bounds = rows.map(([name, [first]]) => [name, first?.[1].bounds ?? []] as const);
    return {
      samples: Object.fromEntries(samples),
      histograms: Object.fromEntries(plain),
      bounds: Object.fromEntries(bounds),
    };
  }

  /**
   * Called in a worker. Resolves with the metrics of its own process, such as CPU time, for `WorkerMetrics.processes`
   * in the parent.
   */
  processMetrics(): Promise<object> {
    return this.#registry.getMetricsAsJSON();
  }

  /**
   * Returns the metrics of the process itself. With workers, these are the sums over all processes, followed by the
   * start time of the main process, which prom-client's aggregation omits.
   */
  async #processText(): Promise<string> {
    const others = await this.#workers.processes();
    if (others.length === 0) return this.#registry.metrics();
    const own = await this.#registry.getMetricsAsJSON();
    const start = await this.#registry.getSingleMetricAsString("process_start_time_seconds");
    return `${await AggregatorRegistry.aggregate([own, ...others]).metrics()}${start}\n`;
  }

  /** Returns all metrics in the text format 0.0.4, with exemplars (open-metrics.ts). */
  async text(): Promise<string> {
    const views = this.#views();
    const texts = this.#all.map((one) => {
      const { metric } = one;
      const series = new Series(capOf(metric));
      for (const row of this.#rows(one, views)) series.add(row);
      return metricText(metric, series.rows);
    });
    const { clock } = this.#process;
    const wallOf = (at: number): number => clock.wall() - (clock.now() - at);
    const snapshots = this.#workers.snapshots();
    const ofHistograms = histograms.map((metric) => {
      const own = views.flatMap((view) => histogramsIn(metric, view));
      const rows = [...own, ...snapshots.flatMap((one) => histogramRows(metric, one, clock.now()))];
      return histogramText(metric, merged(capped([...this.#pastOf(metric), ...rows], metric.cap)), wallOf);
    });
    return `${await this.#processText()}\n${texts.join("")}${ofHistograms.join("")}`;
  }

  #pastOf(metric: HistogramMetric): readonly HistogramRow[] {
    return this.#past.get(metric) ?? [];
  }

  /** Returns all series of one metric, without a limit on their number. */
  read(name: string): readonly Sample[] {
    const views = this.#views();
    return this.#all.filter(({ metric }) => metric.name === name).flatMap((one) => this.#rows(one, views));
  }

  #views(): readonly ClusterView[] {
    return this.#process.clusters().map((cluster) => viewOf(cluster, this.#process.clock));
  }

  #rows(one: CountedMetric, views: readonly ClusterView[]): readonly Sample[] {
    const { name } = one.metric;
    const others = this.#workers.snapshots().flatMap(({ samples }) => samples[name] ?? []);
    return combined(acrossOf(one.metric), this.#ownRows(one, views), others);
  }

  #ownRows({ metric, kept }: CountedMetric, views: readonly ClusterView[]): readonly Sample[] {
    if ("process" in metric) return [...rowsOf(metric.process(this.#process)), ...kept.rows];
    if ("counted" in metric) return kept.rows;
    return [
      ...views.flatMap((view) => ofCluster(metric.labels, view, rowsOf(metric.cluster(view)))),
      ...kept.rows,
    ];
  }
}

function rowsOf(values: Values): readonly Sample[] {
  if (typeof values === "number") return [[[], values]];
  return Array.from(values, ([labels, value, cluster]) =>
    labelled(typeof labels === "string" ? [labels] : labels, value, cluster),
  );
}

/** Adds the label `cluster` to the rows of a cluster, unless the metric declares this label itself. */
function ofCluster<T>(
  labels: readonly string[] = [],
  { label }: LiveCluster,
  rows: readonly Row<T>[],
): readonly Row<T>[] {
  if (label === "" || labels.includes("cluster")) return rows;
  return rows.map(([values, value]) => labelled(values, value, label));
}

function histogramsIn(
  { labels, cluster: rowsIn }: HistogramMetric,
  cluster: LiveCluster,
): readonly HistogramRow[] {
  return ofCluster(labels, cluster, Array.from(rowsIn(cluster)));
}

/**
 * Returns the labels with which the metric counts the entry; undefined if it does not count entries of this kind. This
 * is a function of its own, because TypeScript needs a type parameter to relate the type of `counted[kind]` to that of
 * `entry`.
 */
function countedBy<K extends Entry["kind"]>(
  counted: Counted,
  kind: K,
  entry: EntryOf<K>,
): readonly string[] | undefined {
  const read: Counted[K] = counted[kind];
  return read?.(entry);
}

/**
 * Limits the rows of each cluster to `cap` combinations of label values. If there are more, the first `cap` - 1 are
 * kept, and all label values of the other rows become "other".
 */
function capped(rows: readonly HistogramRow[], cap: number): readonly HistogramRow[] {
  const byCluster = Map.groupBy(rows, ([, , cluster = ""]) => cluster);
  return [...byCluster.values()].flatMap((own) => {
    const kept = new Set(own.map(seriesKey));
    const first = new Set(kept.size > cap ? [...kept].slice(0, cap - 1) : kept);
    return own.map((row) => {
      const [labels, histogram, cluster] = row;
      if (first.has(seriesKey(row))) return row;
      return labelled(
        labels.map(() => "other"),
        histogram,
        cluster,
      );
    });
  });
}

function merged(all: Iterable<HistogramRow>): Iterable<HistogramRow> {
  const sums = new Map<string, HistogramRow>();
  for (const row of all) {
    const [labels, histogram, cluster] = row;
    const key = seriesKey(row);
    sums.set(key, labelled(labels, histogram.plus(sums.get(key)?.[1]), cluster));
  }
  return sums.values();
}

/** Returns the row with "other" in place of the names of a removed cluster and its backends. */
function anonymous<T>(labels: readonly string[] = [], [values, value, cluster]: Row<T>): Row<T> {
  const others = values.map((one, at) =>
    labels[at] === "backend" || labels[at] === "cluster" ? "other" : one,
  );
  return labelled(others, value, cluster === undefined ? "" : "other");
}
