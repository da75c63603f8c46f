/**
 * Reads the declared metrics for a scrape. The data path keeps plain fields, which cost nothing; they are read when a scrape
 * comes. The only file that imports prom-client, for the metrics of the process itself.
 */
import { collectDefaultMetrics, Registry } from "prom-client";
import type { Histogram } from "../../base/histogram.ts";
import type { Entry, EntryOf, Journal } from "../../events/journal.ts";
import { viewOf } from "./cluster-view.ts";
import { histogramText, isCounter, metricText, type Row, Series } from "./exposition.ts";
import type { ClusterView, Counted, LiveCluster, Metric, Process, Values } from "./metric.ts";
import { metrics, requestDuration } from "./metric-declarations.ts";

/** Metrics of prom-client that visit every open socket: 50,000 watches would have to wait. */
const expensive = ["handles", "requests", "resources"].flatMap((what) => [
  `nodejs_active_${what}`,
  `nodejs_active_${what}_total`,
]);

/** A metric, with what it has counted that nothing else remembers: journal entries, and the counts of removed clusters. */
type Kept = { readonly metric: Metric; readonly kept: Series };

export class Metrics {
  readonly #process: Process;
  readonly #registry = new Registry();
  readonly #all: readonly Kept[];
  #durations: readonly (readonly [string, Histogram])[] = [];

  constructor(journal: Journal, process: Process) {
    this.#process = process;
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

  /** Keeps the counts of a cluster that is being removed: a counter never falls. */
  gone(cluster: LiveCluster): void {
    const view = viewOf(cluster, this.#process.clock);
    for (const { metric, kept } of this.#all)
      if (isCounter(metric) && "cluster" in metric)
        for (const [values, value] of rowsOf(metric.cluster(view)))
          kept.add(anonymous(metric.labels ?? [], values), value);
    this.#durations = [...merged([...this.#durations, ...requestDuration.cluster(cluster)])];
  }

  /** The response to a scrape. */
  async text(): Promise<string> {
    const views = this.#views();
    const texts = this.#all.map((one) => {
      const { metric } = one;
      const series = new Series(metric.cap);
      for (const [values, value] of this.#rows(one, views)) series.add(values, value);
      return metricText(metric, series.rows);
    });
    const durations = views.flatMap((view) => [...requestDuration.cluster(view)]);
    const histogram = histogramText(requestDuration, merged([...durations, ...this.#durations]));
    return `${await this.#registry.metrics()}\n${texts.join("")}${histogram}`;
  }

  /** The rows of one metric now, without a cap. */
  read(name: string): readonly Row[] {
    const views = this.#views();
    return this.#all.filter(({ metric }) => metric.name === name).flatMap((one) => this.#rows(one, views));
  }

  #views(): readonly ClusterView[] {
    return this.#process.clusters().map((cluster) => viewOf(cluster, this.#process.clock));
  }

  #rows({ metric, kept }: Kept, views: readonly ClusterView[]): readonly Row[] {
    if ("process" in metric) return rowsOf(metric.process(this.#process));
    if ("counted" in metric) return kept.rows;
    return [...views.flatMap((view) => rowsOf(metric.cluster(view))), ...kept.rows];
  }
}

function rowsOf(values: Values): readonly Row[] {
  if (typeof values === "number") return [[[], values]];
  return Array.from(values, ([labels, value]) => [typeof labels === "string" ? [labels] : labels, value]);
}

/** TypeScript can match the reader with its entry only through their common kind. */
function countedBy<K extends Entry["kind"]>(
  counted: Counted,
  kind: K,
  entry: EntryOf<K>,
): readonly string[] | undefined {
  const read: Counted[K] = counted[kind];
  return read?.(entry);
}

/** Adds up the histograms of each verb. */
function merged(all: Iterable<readonly [string, Histogram]>): ReadonlyMap<string, Histogram> {
  const sums = new Map<string, Histogram>();
  for (const [verb, histogram] of all) sums.set(verb, histogram.plus(sums.get(verb)));
  return sums;
}

/** Backends and clusters that were removed have no series of their own. */
function anonymous(labels: readonly string[], values: readonly string[]): readonly string[] {
  return values.map((value, at) => (labels[at] === "backend" || labels[at] === "cluster" ? "other" : value));
}
