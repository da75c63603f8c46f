/**
 * Answers scrapes. A scrape reads the plain fields in which the data path counts, so that counting costs almost
 * nothing. Only this file imports prom-client, for the metrics of the process itself.
 */
import { collectDefaultMetrics, Registry } from "prom-client";
import type { Histogram } from "../../base/histogram.ts";
import type { Entry, EntryOf, Journal } from "../../events/journal.ts";
import { viewOf } from "./cluster-view.ts";
import { histogramText, isCounter, metricText, type Sample, Series } from "./exposition.ts";
import type { ClusterView, Counted, LiveCluster, Metric, Process, Values } from "./metric.ts";
import { metrics, requestDuration } from "./metric-declarations.ts";

/** Metrics of prom-client that would visit every open socket: with 50,000 watches they would delay requests. */
const expensive = ["handles", "requests", "resources"].flatMap((what) => [
  `nodejs_active_${what}`,
  `nodejs_active_${what}_total`,
]);

/** A metric, and the counts that only this registry has: of journal entries, and of removed clusters. */
type CountedMetric = { readonly metric: Metric; readonly kept: Series };

export class Metrics {
  readonly #process: Process;
  readonly #registry = new Registry();
  readonly #all: readonly CountedMetric[];
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

  /** Keeps the counts of a cluster that is being removed, because a counter must not decrease. */
  gone(cluster: LiveCluster): void {
    const view = viewOf(cluster, this.#process.clock);
    for (const { metric, kept } of this.#all)
      if (isCounter(metric) && "cluster" in metric)
        for (const [values, value] of rowsOf(metric.cluster(view)))
          kept.add(anonymous(metric.labels ?? [], values), value);
    this.#durations = [...merged([...this.#durations, ...requestDuration.cluster(cluster)])];
  }

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

  /** Returns all series of one metric, however many there are. */
  read(name: string): readonly Sample[] {
    const views = this.#views();
    return this.#all.filter(({ metric }) => metric.name === name).flatMap((one) => this.#rows(one, views));
  }

  #views(): readonly ClusterView[] {
    return this.#process.clusters().map((cluster) => viewOf(cluster, this.#process.clock));
  }

  #rows({ metric, kept }: CountedMetric, views: readonly ClusterView[]): readonly Sample[] {
    if ("process" in metric) return rowsOf(metric.process(this.#process));
    if ("counted" in metric) return kept.rows;
    return [...views.flatMap((view) => rowsOf(metric.cluster(view))), ...kept.rows];
  }
}

function rowsOf(values: Values): readonly Sample[] {
  if (typeof values === "number") return [[[], values]];
  return Array.from(values, ([labels, value]) => [typeof labels === "string" ? [labels] : labels, value]);
}

/** Returns undefined if the metric does not count the entry. TypeScript needs `kind` to connect function and entry. */
function countedBy<K extends Entry["kind"]>(
  counted: Counted,
  kind: K,
  entry: EntryOf<K>,
): readonly string[] | undefined {
  const read: Counted[K] = counted[kind];
  return read?.(entry);
}

function merged(all: Iterable<readonly [string, Histogram]>): ReadonlyMap<string, Histogram> {
  const sums = new Map<string, Histogram>();
  for (const [verb, histogram] of all) sums.set(verb, histogram.plus(sums.get(verb)));
  return sums;
}

/** Returns the label values with "other" in place of the names of a removed cluster and its backends. */
function anonymous(labels: readonly string[], values: readonly string[]): readonly string[] {
  return values.map((value, at) => (labels[at] === "backend" || labels[at] === "cluster" ? "other" : value));
}
