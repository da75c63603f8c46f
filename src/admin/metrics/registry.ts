/**
 * Answers scrapes by reading the plain fields in which the request path counts, so that counting costs almost nothing.
 * Only this file imports prom-client, for the metrics of the process itself.
 */
import { AggregatorRegistry, collectDefaultMetrics, Registry } from "prom-client";
import type { Histogram } from "../../base/histogram.ts";
import type { Entry, EntryOf, Journal } from "../../events/journal.ts";
import { viewOf } from "./cluster-view.ts";
import { histogramText, isCounter, metricText, type Sample, Series } from "./exposition.ts";
import { histograms } from "./histogram-declarations.ts";
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
import { acrossOf, combined, histogramRows, type MetricsSnapshot } from "./snapshot.ts";

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
  readonly #past = new Map<HistogramMetric, readonly Row[]>();

  constructor(journal: Journal, process: Process, workers: WorkerMetrics = noWorkers) {
    this.#process = process;
    this.#workers = workers;
    collectDefaultMetrics({ register: this.#registry });
    for (const name of expensive) this.#registry.removeSingleMetric(name);
    this.#all = metrics.map((metric) => ({ metric, kept: new Series(metric.cap) }));
    journal.subscribe((entry) => {
      for (const { metric, kept } of this.#all) {
        const labels = "counted" in metric ? countedBy(metric.counted, entry.kind, entry) : undefined;
        if (labels !== undefined) kept.add(labels, 1);
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
        for (const [values, value] of rowsOf(metric.cluster(view)))
          kept.add(anonymous(metric.labels ?? [], values), value);
    for (const metric of histograms)
      this.#past.set(metric, [...merged([...this.#pastOf(metric), ...anonymousRows(metric, cluster)])]);
  }

  /** Keeps the counts of a worker that has ended, because a counter must not decrease. */
  ended(snapshot: MetricsSnapshot): void {
    for (const { metric, kept } of this.#all)
      if (isCounter(metric) && acrossOf(metric) === "sum")
        for (const [values, value] of snapshot.samples[metric.name] ?? []) kept.add(values, value);
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
      (metric) => [metric.name, views.flatMap((view) => [...metric.cluster(view)])] as const,
    );
    const plain = rows.map(
      ([name, all]) => [name, all.map(([labels, one]) => [labels, one.toPlain(now)] as const)] as const,
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
      const series = new Series(metric.cap);
      for (const [values, value] of this.#rows(one, views)) series.add(values, value);
      return metricText(metric, series.rows);
    });
    const { clock } = this.#process;
    const wallOf = (at: number): number => clock.wall() - (clock.now() - at);
    const snapshots = this.#workers.snapshots();
    const ofHistograms = histograms.map((metric) => {
      const own = views.flatMap((view) => [...metric.cluster(view)]);
      const rows = [...own, ...snapshots.flatMap((one) => histogramRows(metric, one, clock.now()))];
      return histogramText(metric, merged(capped([...this.#pastOf(metric), ...rows], metric.cap)), wallOf);
    });
    return `${await this.#processText()}\n${texts.join("")}${ofHistograms.join("")}`;
  }

  #pastOf(metric: HistogramMetric): readonly Row[] {
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
    return [...views.flatMap((view) => rowsOf(metric.cluster(view))), ...kept.rows];
  }
}

function rowsOf(values: Values): readonly Sample[] {
  if (typeof values === "number") return [[[], values]];
  return Array.from(values, ([labels, value]) => [typeof labels === "string" ? [labels] : labels, value]);
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

type Row = readonly [labels: readonly string[], Histogram];

const keyOf = ([labels]: Row): string => labels.join("\0");

/**
 * Limits the rows to `cap` combinations of label values. If there are more, the first `cap` - 1 are kept, and all label
 * values of the other rows become "other".
 */
function capped(rows: readonly Row[], cap: number): readonly Row[] {
  const kept = new Set(rows.map(keyOf));
  const first = new Set(kept.size > cap ? [...kept].slice(0, cap - 1) : kept);
  return rows.map((row) => (first.has(keyOf(row)) ? row : [row[0].map(() => "other"), row[1]]));
}

function anonymousRows({ labels, cluster: rowsIn }: HistogramMetric, cluster: LiveCluster): readonly Row[] {
  return Array.from(rowsIn(cluster), ([values, histogram]) => [anonymous(labels, values), histogram]);
}

function merged(all: Iterable<Row>): Iterable<Row> {
  const sums = new Map<string, Row>();
  for (const row of all) sums.set(keyOf(row), [row[0], row[1].plus(sums.get(keyOf(row))?.[1])]);
  return sums.values();
}

/** Returns the label values with "other" in place of the names of a removed cluster and its backends. */
function anonymous(labels: readonly string[], values: readonly string[]): readonly string[] {
  return values.map((value, at) => (labels[at] === "backend" || labels[at] === "cluster" ? "other" : value));
}
