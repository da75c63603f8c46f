/**
 * Numbers for Prometheus. The path keeps plain fields, which cost nothing; they are copied when somebody asks. The
 * only file that knows prom-client, whose project has moved to another package with the same face.
 */
import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { Histogram } from "../../base/histogram.ts";
import { limits } from "../../base/limits.ts";
import type { Journal } from "../../events/journal.ts";
import { families, verbOf } from "./families.ts";
import type { Family, Snapshot } from "./family.ts";
import { histogramText, requestDuration } from "./histogram-text.ts";
import { type Row, Series } from "./series.ts";
import { Tally } from "./tally.ts";

/** What a scrape is answered with. */
export type Metrics = { readonly metrics: () => Promise<string>; readonly contentType: string };

/** Of Node's own numbers, those for which every open socket is visited: 50,000 watches would have to wait. */
const tooDear = ["handles", "requests", "resources"].flatMap((what) => [
  `nodejs_active_${what}`,
  `nodejs_active_${what}_total`,
]);

export function createMetrics(journal: Journal, snapshot: () => Snapshot): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of tooDear) registry.removeSingleMetric(name);
  const told = new Tally(journal);
  const copied = families.map((family) => ({ family, metric: metricOf(family, registry) }));
  return {
    contentType: registry.contentType,
    async metrics() {
      const now = snapshot();
      for (const { family, metric } of copied) copy(family, metric, family.rows(now, told));
      return `${await registry.metrics()}${histogramText(requestDuration, verbsOf(now.durations))}`;
    },
  };
}

/** Two verbs of RequestInfo may be one of the metric's: they are summed. */
function verbsOf(durations: ReadonlyMap<string, Histogram>): ReadonlyMap<string, Histogram> {
  const byVerb = new Map<string, Histogram>();
  for (const [word, histogram] of durations) {
    const verb = verbOf(word);
    byVerb.set(verb, histogram.plus(byVerb.get(verb)));
  }
  return byVerb;
}

type Metric = Counter | Gauge;

function metricOf({ type, name, help, labels }: Family, registry: Registry): Metric {
  const options = { name: `watchkeeper_${name}`, help, labelNames: labels, registers: [registry] };
  return type === "counter" ? new Counter(options) : new Gauge(options);
}

function copy({ labels, cap = limits.familySeries }: Family, metric: Metric, rows: readonly Row[]): void {
  const series = new Series(cap);
  for (const [values, value] of rows) series.add(values, value);
  metric.reset();
  for (const [values, value] of series.rows) metric.inc(Object.fromEntries(labelled(labels, values)), value);
}

/** An empty "cluster" is the only one, which is not told: for Prometheus that is the same. */
function labelled(labels: readonly string[], values: readonly string[]): [label: string, value: string][] {
  const all = labels.map((label, at): [string, string] => [label, values[at] ?? ""]);
  return all.filter(([label, value]) => label !== "cluster" || value !== "");
}
