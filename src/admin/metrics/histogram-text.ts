/** Formats histograms in the Prometheus text format: prom-client's own accept only one observation at a time. */
import type { Histogram } from "../../base/histogram.ts";

import type { HistogramMetric } from "./metric.ts";

/** Label values beyond the cap are dropped. They are a closed list that is shorter than the cap. */
export function histogramText(
  family: Pick<HistogramMetric, "name" | "help" | "labels" | "cap">,
  rows: Iterable<readonly [string, Histogram]>,
): string {
  const {
    help,
    labels: [label],
    cap,
  } = family;
  const name = `watchkeeper_${family.name}`;
  const texts = Array.from(rows)
    .slice(0, cap)
    .map(([value, histogram]) => seriesOf(name, `${label}="${value}"`, histogram));
  return `# HELP ${name} ${help}\n# TYPE ${name} histogram\n${texts.join("")}\n`;
}

function seriesOf(name: string, label: string, { bounds, counts, sum }: Histogram): string {
  let count = 0;
  const buckets = counts.map((one, at) => {
    count += one;
    return `${name}_bucket{${label},le="${bounds[at] ?? "+Inf"}"} ${count}\n`;
  });
  return `${buckets.join("")}${name}_sum{${label}} ${sum}\n${name}_count{${label}} ${count}\n`;
}
