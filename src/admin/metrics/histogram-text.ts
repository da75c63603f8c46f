/** Histograms as Prometheus reads them: prom-client's own could only be fed one observation after the other. */
import type { Histogram } from "../../base/histogram.ts";

export type HistogramFamily = {
  /** Behind `watchkeeper_`. */
  readonly name: string;
  readonly help: string;
  readonly label: string;
  /** So many label values at most: each has as many series as it has bounds, and three. */
  readonly cap: number;
};

export const requestDuration: HistogramFamily = {
  name: "request_duration_seconds",
  help: "Time from a request's head to the end of its answer, by verb; long-running requests and watches are left out",
  label: "verb",
  cap: 8,
};

/** Those beyond the cap are left out: label values are ours, and the cap is above their number. */
export function histogramText(family: HistogramFamily, rows: Iterable<readonly [string, Histogram]>): string {
  const { help, label, cap } = family;
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
