/**
 * The outcome of a replayed incident: the measurements with the naive proxy and with watchkeeper, and the expectations
 * that watchkeeper did not meet.
 */
export type Comparison = { readonly what: string; readonly without: string; readonly with: string };

export type Outcome = {
  readonly rows: readonly Comparison[];
  /** The expectations that watchkeeper did not meet, each as a sentence; empty: watchkeeper met all. */
  readonly broken: readonly string[];
};

/** Returns the lines of a table. The first line is the heading. */
export function tableOf({ rows }: Outcome): readonly string[] {
  const all: readonly Comparison[] = [
    { what: "", without: "without (naive proxy)", with: "with watchkeeper" },
    ...rows,
  ];
  const widthOf = (pick: (row: Comparison) => string): number =>
    Math.max(...all.map((row) => pick(row).length));
  const [first, second] = [widthOf((row) => row.what), widthOf((row) => row.without)];
  return all.map((row) => `  ${row.what.padEnd(first)}   ${row.without.padEnd(second)}   ${row.with}`);
}

export function brokenOf(claims: Readonly<Record<string, boolean>>): readonly string[] {
  return Object.entries(claims).flatMap(([claim, holds]) => (holds ? [] : [claim]));
}

export function inSeconds(ms: number): string {
  return `${(ms / 1_000).toFixed(2)} s`;
}

export function whenReported(reported: { readonly afterMs: number } | undefined): string {
  return reported === undefined ? "never" : `after ${inSeconds(reported.afterMs)}`;
}
