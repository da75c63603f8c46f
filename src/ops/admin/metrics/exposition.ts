/** Writes metrics in the Prometheus text format, and limits the number of series of a metric. */
import type { Exemplar, Histogram } from "../../../base/histogram.ts";
import { limits } from "../../../base/limits.ts";

/**
 * A value of one series. The label values are in the order in which the metric declares its labels. `cluster`: value of
 * the label `cluster`, which every metric may have; undefined: the process has only one cluster, or the series is about
 * no cluster.
 */
export type Row<T> = readonly [labels: readonly string[], value: T, cluster?: string];

export type Sample = Row<number>;

/** Returns a row with the label `cluster`; "": without this label. */
export function labelled<T>(labels: readonly string[], value: T, cluster = ""): Row<T> {
  return cluster === "" ? [labels, value] : [labels, value, cluster];
}

/** Identifies the series of a row. */
export function seriesKey([labels, , cluster = ""]: Row<unknown>): string {
  return [cluster, ...labels].join("\0");
}

type Sum = { readonly labels: readonly string[]; value: number; readonly cluster: string };

/**
 * Sums a metric's values by label values. Once a cluster has `cap` - 1 series, its values with new label values are
 * added to its series "other" (A54).
 */
export class Series {
  readonly #cap: number;
  readonly #sums = new Map<string, Sum>();
  /** Number of series, by cluster. */
  readonly #sizes = new Map<string, number>();

  constructor(cap: number = limits.familySeries) {
    this.#cap = cap;
  }

  /** Adds a value. Existing series are never evicted, so that a flood of new labels cannot displace them. */
  add([labels, value, cluster = ""]: Sample): void {
    const isNamed = cluster === "" || this.#sizes.has(cluster) || this.#sizes.size < limits.clusterNames;
    const named = isNamed ? cluster : "other";
    const clipped = labels.map((label) => label.slice(0, limits.labelChars));
    if (this.#addTo([clipped, value, named], this.#cap - 1)) return;
    this.#addTo([clipped.map(() => "other"), value, named], this.#cap);
  }

  get rows(): Sample[] {
    return Array.from(this.#sums.values(), ({ labels, value, cluster }) => labelled(labels, value, cluster));
  }

  #addTo([labels, value, cluster = ""]: Sample, cap: number): boolean {
    const key = seriesKey([labels, value, cluster]);
    const known = this.#sums.get(key);
    const size = this.#sizes.get(cluster) ?? 0;
    if (known === undefined && size >= cap) return false;
    if (known === undefined) {
      this.#sums.set(key, { labels, value, cluster });
      this.#sizes.set(cluster, size + 1);
    } else known.value += value;
    return true;
  }
}

type Family = { readonly name: string; readonly help: string; readonly labels?: readonly string[] };

export function isCounter({ name }: Pick<Family, "name">): boolean {
  return name.endsWith("_total");
}

/** Returns the text of a gauge or a counter. A metric without labels and without rows gets the value 0. */
export function metricText(family: Family, rows: readonly Sample[]): string {
  const name = `watchkeeper_${family.name}`;
  const { labels = [] } = family;
  const all: readonly Sample[] = rows.length === 0 && labels.length === 0 ? [[[], 0]] : rows;
  const lines = all.map(
    ([values, value, cluster]) => `${name}${labelText(labels, values, cluster)} ${value}\n`,
  );
  return `${headOf(family, isCounter(family) ? "counter" : "gauge")}${lines.join("")}\n`;
}

/**
 * Returns the text of a histogram metric, which has one histogram for each row of label values. The caller limits the
 * number of rows. `wallOf` converts the clock readings of exemplars to ms since 1970.
 */
export function histogramText(
  family: Family & { readonly labels: readonly string[] },
  rows: Iterable<Row<Histogram>>,
  wallOf: (at: number) => number = (at) => at,
): string {
  const texts = Array.from(rows, ([values, histogram, cluster]) =>
    bucketsOf(`watchkeeper_${family.name}`, {
      label: labelText(family.labels, values, cluster).slice(1, -1),
      histogram,
      wallOf,
    }),
  );
  return `${headOf(family, "histogram")}${texts.join("")}\n`;
}

function headOf({ name, help }: Family, type: string): string {
  return `# HELP watchkeeper_${name} ${help}\n# TYPE watchkeeper_${name} ${type}\n`;
}

type Buckets = {
  readonly label: string;
  readonly histogram: Histogram;
  readonly wallOf: (at: number) => number;
};

function bucketsOf(name: string, { label, histogram, wallOf }: Buckets): string {
  const { bounds, counts, sum } = histogram;
  let count = 0;
  const buckets = counts.map((one, at) => {
    count += one;
    const exemplar = exemplarText(histogram.exemplarOf(at), wallOf);
    return `${name}_bucket{${label},le="${bounds[at] ?? "+Inf"}"} ${count}${exemplar}\n`;
  });
  return `${buckets.join("")}${name}_sum{${label}} ${sum}\n${name}_count{${label}} ${count}\n`;
}

/**
 * Matches the Audit-IDs that may become exemplars, such as those of client-go and of the proxy. A longer id is omitted:
 * OpenMetrics limits an exemplar's labels to 128 characters, and a clipped id would match no line of an audit log.
 */
const joinable = /^[\w.:-]{1,100}$/;

function exemplarText(exemplar: Exemplar | undefined, wallOf: (at: number) => number): string {
  if (exemplar === undefined || !joinable.test(exemplar.auditId)) return "";
  const { auditId, value, at } = exemplar;
  return ` # {audit_id="${auditId}"} ${value} ${(wallOf(at) / 1000).toFixed(3)}`;
}

const escapes: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", '"': '\\"' };

/** Omits the label "cluster" if it is empty, because Prometheus treats an empty label like a missing label. */
function labelText(labels: readonly string[], values: readonly string[], cluster = ""): string {
  const all = labels.map((label, at) => [label, values[at] ?? ""] as const);
  const pairs = [...all, ["cluster", cluster] as const].flatMap(([label, value]) =>
    label === "cluster" && value === ""
      ? []
      : [`${label}="${value.replace(/[\\\n"]/g, (char) => escapes[char] ?? char)}"`],
  );
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}
