/** Formats and quantiles for the printed results of runs. */

/** Returns a quantile of sorted values; NaN if there are none. `share` is from 0 to 1. */
export function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

type Row = readonly (string | number)[];

/** Returns a table in Markdown. */
export function markdown(head: Row, rows: readonly Row[]): string {
  return [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
}
