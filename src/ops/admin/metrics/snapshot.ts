/** The metrics of one worker, as it sends them to its parent, and how the parent combines them with its own. */
import { Histogram, type PlainHistogram } from "../../../base/histogram.ts";
import { labelled, type Row, type Sample, seriesKey } from "./exposition.ts";
import type { Across, HistogramMetric, Metric } from "./metric.ts";

type PlainRow = Row<PlainHistogram>;

export type MetricsSnapshot = {
  /** The values that the parent combines with its own, except histograms, by the metric's name. */
  readonly samples: Readonly<Record<string, readonly Sample[]>>;
  readonly histograms: Readonly<Record<string, readonly PlainRow[]>>;
  /** Bounds of each histogram's buckets, by the metric's name, because the rows do not contain them. */
  readonly bounds: Readonly<Record<string, readonly number[]>>;
};

export type HistogramRow = Row<Histogram>;

/** Returns the rule by which the metric's values from several processes are combined. */
export function acrossOf(metric: Metric): Across {
  return metric.across ?? ("cluster" in metric ? "sum" : "own");
}

/**
 * Combines the rows of this process (`own`) and of its workers (`others`) by the rule `across`. For "sum", returns all
 * rows, because the caller adds up rows with equal labels.
 */
export function combined(
  across: Across,
  own: readonly Sample[],
  others: readonly Sample[],
): readonly Sample[] {
  if (across === "own" || others.length === 0) return own;
  const all = [...own, ...others];
  if (across === "sum") return all;
  const best = new Map<string, Sample>();
  for (const row of all) {
    const key = seriesKey(row);
    const known = best.get(key);
    const isBetter = known === undefined || (across === "max" ? row[1] > known[1] : row[1] < known[1]);
    if (isBetter) best.set(key, row);
  }
  return Array.from(best.values());
}

/** Returns the rows of a histogram in a worker's snapshot. `now`: clock reading of this process. */
export function histogramRows(
  { name }: HistogramMetric,
  { histograms, bounds }: MetricsSnapshot,
  now: number,
): readonly HistogramRow[] {
  const own = bounds[name] ?? [];
  return (histograms[name] ?? []).map(([labels, plain, cluster]) =>
    labelled(labels, Histogram.fromPlain(own, plain, now), cluster),
  );
}
