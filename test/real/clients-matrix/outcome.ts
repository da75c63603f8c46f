/** What came of the runs, how they differ from the direct ones, and the table. */
import { Assertion } from "uvu/assert";
import { isQuoted, isUnknown, isUnknownWrite, type Outage } from "../load/unknown-writes.ts";
import type { Said } from "../rig/said.ts";
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

/** A request for what lives on one apiserver. In Unix milliseconds; `endedAt`: undefined if no apiserver logged its end. */
type Tunnel = { readonly backend: string; readonly at: number; readonly endedAt?: number };

/** What is known of an operation that failed. */
export type Failed = {
  readonly error: unknown;
  /** When the client had failed. */
  readonly at: number;
  /** True if the client still ran seconds later. */
  readonly hangs: boolean;
  /** By the apiservers' audit logs. */
  readonly tunnels: readonly Tunnel[];
  /** By the proxy's journal: requests that the proxy answered in the place of an apiserver. */
  readonly unanswered: readonly Said[];
};

const anyNamespace = /\brun-\d{4}\b/;

/** The entries about requests in this namespace. A request in no namespace may be one of any operation. */
export function unansweredIn(journal: readonly Said[], namespace: string): readonly Said[] {
  return journal.filter(({ msg, URI }) => {
    const [named = namespace] = anyNamespace.exec(String(URI)) ?? [];
    return msg === "request.failed" && named === namespace;
  });
}

/** As call.ts tells it: the client hung. */
const isHung = /killed after \d+ ms/;

/** Returns the cost that explains the failure, or undefined: then it is a defect. Wrong data is never explained. */
export function costOf({ error, at, hangs, tunnels, unanswered }: Failed, outage: Outage): Cost | undefined {
  const failure = messageOf(error);
  if (error instanceof Assertion || hangs || isHung.test(failure)) return undefined;
  if (isUnknown.test(failure)) {
    const quoted = unanswered.filter((entry) => isQuoted(entry, failure));
    const areWrites = quoted.length > 0 && quoted.every((entry) => isUnknownWrite(entry, [outage]));
    return areWrites ? "outcome of a write unknown" : undefined;
  }
  const isEnded = tunnels
    .filter((tunnel) => tunnel.backend === outage.backend && tunnel.at <= outage.until)
    .some(({ endedAt = outage.until }) => endedAt >= outage.since);
  return isEnded && at >= outage.since ? "ended with its apiserver" : undefined;
}

/** An assertion's message is only half of it. */
export function messageOf(error: unknown): string {
  if (error instanceof Assertion) return `${error.message}: got ${String(error.actual)}`;
  return error instanceof Error ? error.message : String(error);
}

/** The tunnels of one apiserver whose paths contain `path`, by its log. */
export function tunnelsIn(log: string, backend: string, path: string): readonly Tunnel[] {
  const entries = log
    .split("\n")
    .filter((line) => line.startsWith("{") && line.endsWith("}") && line.includes(path))
    .map((line) => JSON.parse(line) as AuditEntry);
  return [...Map.groupBy(entries, ({ auditID }) => auditID).values()].map((stages) => {
    const end = stages.find(({ stage }) => stage === "ResponseComplete");
    return {
      backend,
      at: Math.min(...stages.map(({ requestReceivedTimestamp }) => Date.parse(requestReceivedTimestamp))),
      ...(end && { endedAt: Date.parse(end.stageTimestamp) }),
    };
  });
}

type AuditEntry = {
  readonly auditID: string;
  readonly stage: string;
  readonly requestReceivedTimestamp: string;
  readonly stageTimestamp: string;
};

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
