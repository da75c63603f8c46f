/**
 * Converts a scrape to the requested format. The input is the Prometheus text format 0.0.4, but with exemplars. A
 * scrape in format 0.0.4 must not have exemplars, so they are removed. A scrape in OpenMetrics 1.0 keeps them.
 */

export const openMetricsType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/**
 * True if the Accept field of a scrape gives OpenMetrics 1.0 at least as high a quality value as the text format. A
 * client that names no type, such as curl, gets the text format.
 */
export function wantsOpenMetrics(accept: string): boolean {
  const ranges = accept.toLowerCase().split(",").map(rangeOf);
  const open = ranges.filter(({ type, version }) => type === openType && version === "1.0.0");
  const text = ranges.filter(({ type }) => type === "text/plain");
  const best = qualityOf(open);
  return best > 0 && best >= qualityOf(text);
}

const openType = "application/openmetrics-text";

type MediaRange = { readonly type: string; readonly quality: number; readonly version: string };

function rangeOf(text: string): MediaRange {
  const [type = "", ...parameters] = text.split(";").map((part) => part.trim());
  const valueOf = (name: string): string | undefined =>
    parameters.find((one) => one.startsWith(`${name}=`))?.slice(name.length + 1);
  return { type, quality: Number(valueOf("q") ?? "1"), version: valueOf("version") ?? "1.0.0" };
}

function qualityOf(ranges: readonly MediaRange[]): number {
  return Math.max(0, ...ranges.map(({ quality }) => quality));
}

/** Matches the exemplar of a bucket, as `exemplarText` writes it. A line without an exemplar never ends like this. */
const exemplar = / # \{[^{}\n]*\} \S+ \S+$/gm;

export function withoutExemplars(text: string): string {
  return text.replaceAll(exemplar, "");
}

/**
 * Converts the text format 0.0.4 to OpenMetrics. There, the metadata of a counter has the name without `_total`, empty
 * lines are not allowed, bounds of buckets are floating-point numbers, and the last line is `# EOF`.
 */
export function openMetricsOf(text: string): string {
  const counters = text
    .replaceAll(/^# HELP (\S+)_total (.*)\n# TYPE \1_total counter$/gm, "# HELP $1 $2\n# TYPE $1 counter")
    .replaceAll(/([{,]le=")(\d+)"/g, '$1$2.0"');
  const lines = counters.split("\n").filter((line) => line !== "");
  return `${lines.join("\n")}\n# EOF\n`;
}
