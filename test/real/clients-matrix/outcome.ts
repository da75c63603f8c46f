/** What came of the runs, how they differ from the direct ones, and the table. */
import { isUnknown } from "../load/unknown-writes.ts";
import type { Operation } from "./operation.ts";

export const modes = ["direct", "through", "through with faults"] as const;
export type Mode = (typeof modes)[number];

/**
 * What the failure of an apiserver may cost an operation, as docs/compatibility.md says: a client that is connected to
 * this apiserver alone would lose the same, and more.
 */
const costs = ["ended with its apiserver", "outcome of a write unknown"] as const;
export type Cost = (typeof costs)[number];

export type Outcome = {
  readonly mode: Mode;
  readonly operation: Pick<Operation, "client" | "name">;
  /** "api-0 killed"; "" if no apiserver failed meanwhile. */
  readonly fault: string;
  /** What the client showed, without what varies. */
  readonly shown: string;
  /** Why the outcome is wrong; undefined: it is right. */
  readonly failure?: string;
  readonly cost?: Cost;
};

/** As call.ts tells it: the client hung. */
const isHung = /killed after \d+ ms/;

/** `carriers`: the apiservers that had a tunnel or a followed log of the operation; `victim`: the one that failed. */
export function costOf(failure: string, carriers: readonly string[], victim: string): Cost | undefined {
  if (isUnknown.test(failure)) return "outcome of a write unknown";
  return carriers.includes(victim) && !isHung.test(failure) ? "ended with its apiserver" : undefined;
}

function nameOf({ operation: { client, name } }: Outcome): string {
  return `${client}: ${name}`;
}

/** Returns the first line that differs. */
function difference(one: string, other: string): string {
  const [a, b] = [one.split("\n"), other.split("\n")];
  const at = a.findIndex((line, index) => line !== b[index]);
  const line = at < 0 ? a.length : at;
  return `directly "${a[line] ?? "nothing more"}", here "${b[line] ?? "nothing more"}"`;
}

/** What is wrong with it; undefined: it is right, and as it is directly, or the failure of an apiserver explains it. */
export function defectOf(outcome: Outcome, direct: Outcome | undefined): string | undefined {
  const { mode, fault, failure, cost, shown } = outcome;
  if (cost !== undefined) return undefined;
  const where = `${mode}${fault === "" ? "" : ` (${fault})`}: ${nameOf(outcome)}`;
  if (failure !== undefined) return `${where}: ${failure}`;
  if (direct === undefined || direct.failure !== undefined || direct.shown === shown) return undefined;
  return `${where}: ${difference(direct.shown, shown)}`;
}

type Direct = ReadonlyMap<string, Outcome>;

function directOf(outcomes: readonly Outcome[]): Direct {
  return new Map(outcomes.filter(({ mode }) => mode === "direct").map((one) => [nameOf(one), one]));
}

export function defects(outcomes: readonly Outcome[]): readonly string[] {
  const direct = directOf(outcomes);
  return outcomes.flatMap((one) => defectOf(one, direct.get(nameOf(one))) ?? []);
}

function cell(outcomes: readonly Outcome[], direct: Direct): string {
  if (outcomes.length === 0) return "–";
  const isWrong = (one: Outcome): boolean => defectOf(one, direct.get(nameOf(one))) !== undefined;
  const told = [
    ...costs.map((cost) => [outcomes.filter((one) => one.cost === cost).length, cost] as const),
    [outcomes.filter(isWrong).length, "WRONG"] as const,
  ].filter(([number]) => number > 0);
  const right = outcomes.length - told.reduce((sum, [number]) => sum + number, 0);
  return [`${right} of ${outcomes.length}`, ...told.map(([number, what]) => `${number} ${what}`)].join(", ");
}

/** Rows are operations of clients; with `byClient`, clients. "5 of 6": five runs were right and as they are directly. */
export function table(outcomes: readonly Outcome[], byClient = false): string {
  const direct = directOf(outcomes);
  const rowOf = (one: Outcome): string => (byClient ? one.operation.client : nameOf(one));
  const rows = [...new Set(outcomes.map(rowOf))].map((row) => {
    const own = outcomes.filter((one) => rowOf(one) === row);
    const cells = modes.map((mode) =>
      cell(
        own.filter((one) => one.mode === mode),
        direct,
      ),
    );
    return `| ${[row, ...cells].join(" | ")} |`;
  });
  return [`| | ${modes.join(" | ")} |`, `|${" --- |".repeat(modes.length + 1)}`, ...rows].join("\n");
}
