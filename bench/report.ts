/** Computes the medians of all rounds, and writes them as a table to read and as a file for programs. */
import type { Figures, Scenario } from "./scenario.ts";

/** The median over all rounds, by scenario, peer and metric. */
export type Medians = Record<string, Record<string, Record<string, number>>>;

/** The figures of each round, by peer. */
export type Rounds = ReadonlyMap<string, readonly Figures[]>;

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const [low = Number.NaN, high = Number.NaN] = [sorted[middle - 1], sorted[middle]];
  return sorted.length % 2 === 1 ? high : (low + high) / 2;
}

export function mediansOf(scenario: Scenario, rounds: Rounds): Record<string, Record<string, number>> {
  return Object.fromEntries(
    [...rounds].map(([peer, figures]) => [
      peer,
      Object.fromEntries(
        scenario.metrics.map(({ key }) => [key, median(figures.map((each) => each[key] ?? Number.NaN))]),
      ),
    ]),
  );
}

/**
 * Returns a table with one row for each peer: the median of each metric with its spread, and the ratio of watchkeeper's
 * median to the peer's. A ratio below 1 is good for costs and bad for throughput.
 */
export function tableOf(scenario: Scenario, rounds: Rounds, ours: string): string {
  const medians = mediansOf(scenario, rounds);
  const head = ["", ...scenario.metrics.flatMap(({ title }) => [title, "min–max", `${ours}/peer`])];
  const rows = [...rounds].map(([peer, figures]) => [
    peer,
    ...scenario.metrics.flatMap(({ key, digits }) => {
      const values = figures.map((each) => each[key] ?? Number.NaN);
      const own = medians[peer]?.[key] ?? Number.NaN;
      if (Number.isNaN(own)) return ["–", "", ""];
      const spread = `${Math.min(...values).toFixed(digits)}–${Math.max(...values).toFixed(digits)}`;
      const ratio = (medians[ours]?.[key] ?? Number.NaN) / own;
      return [own.toFixed(digits), spread, peer === ours || !Number.isFinite(ratio) ? "" : ratio.toFixed(2)];
    }),
  ]);
  return aligned([head, ...rows]);
}

function aligned(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  const lines = rows.map((row) =>
    row.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
    ),
  );
  const [head = [], ...rest] = lines;
  const rule = widths.map((width, column) =>
    column === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`,
  );
  return [head, rule, ...rest].map((line) => `| ${line.join(" | ")} |`).join("\n");
}
