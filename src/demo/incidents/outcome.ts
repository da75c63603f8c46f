/** What a story of an incident comes to: the same things without and with watchkeeper, and what did not hold. Pure. */

export type Comparison = { readonly what: string; readonly without: string; readonly with: string };

export type Outcome = {
  readonly rows: readonly Comparison[];
  /** What did not hold with watchkeeper, a sentence each; none: the story is as docs/incidents tells it. */
  readonly broken: readonly string[];
};

/** Lines of a table, a title first. */
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

/** Of those that hold nothing is said. */
export function brokenOf(claims: Readonly<Record<string, boolean>>): readonly string[] {
  return Object.entries(claims).flatMap(([claim, holds]) => (holds ? [] : [claim]));
}

export function inSeconds(ms: number): string {
  return `${(ms / 1_000).toFixed(2)} s`;
}

/** When the operator was told. */
export function whenTold(told: { readonly afterMs: number } | undefined): string {
  return told === undefined ? "never" : `after ${inSeconds(told.afterMs)}`;
}
