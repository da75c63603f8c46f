/** The outcomes of operations, how they differ from the outcomes of the direct runs, and the table of results. */
import { Assertion } from "uvu/assert";
import { isQuoted, isUnknown, isUnknownWrite, type Outage } from "../load/unknown-writes.ts";
import type { Said } from "../rig/said.ts";
import type { Operation } from "./operation.ts";

export const modes = ["direct", "through", "through with faults"] as const;
export type Mode = (typeof modes)[number];

/**
 * What the failure of an apiserver may cost an operation (docs/compatibility.md). A client that is connected only to
 * this apiserver would lose the same or more.
 */
const costs = ["ended with its apiserver", "outcome of a write unknown"] as const;
export type Cost = (typeof costs)[number];

export type Outcome = {
  readonly mode: Mode;
  readonly operation: Pick<Operation, "client" | "name">;
  /** Name of the fault, such as "api-0 killed"; "" if no apiserver failed during the run. */
  readonly fault: string;
  /** What the client printed, without the text that varies between runs. */
  readonly shown: string;
  /** Why the outcome is wrong. Undefined if it is right. */
  readonly failure?: string;
  readonly cost?: Cost;
};

/**
 * A request whose stream lives on one apiserver. Times are Unix milliseconds; `endedAt` is undefined if no apiserver
 * logged its end.
 */
type Tunnel = { readonly backend: string; readonly at: number; readonly endedAt?: number };

/** What is known of an operation that failed. */
export type Failed = {
  readonly error: unknown;
  /** When the client failed, in Unix milliseconds. */
  readonly at: number;
  /** True if the client still ran two seconds after its operation had failed. */
  readonly hangs: boolean;
  /** Requests whose streams live on one apiserver, from the apiservers' audit logs. */
  readonly tunnels: readonly Tunnel[];
  /** Entries of the proxy's log about requests that the proxy answered itself because the apiserver did not. */
  readonly unanswered: readonly Said[];
};

const anyNamespace = /\brun-\d{4}\b/;

/**
 * Returns the entries about requests in this namespace. A request without a namespace may be from any operation, so its
 * entry is returned too.
 */
export function unansweredIn(journal: readonly Said[], namespace: string): readonly Said[] {
  return journal.filter(({ msg, URI }) => {
    const [named = namespace] = anyNamespace.exec(String(URI)) ?? [];
    return msg === "request.failed" && named === namespace;
  });
}

/** The text of call.ts for a client that hung. */
const isHung = /killed after \d+ ms/;

/**
 * Returns the cost that explains the failure, or undefined if the failure is a defect of the proxy. Wrong data is
 * always a defect.
 */
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

/** The message of an assertion does not contain the actual value. */
export function messageOf(error: unknown): string {
  if (error instanceof Assertion) return `${error.message}: got ${String(error.actual)}`;
  return error instanceof Error ? error.message : String(error);
}

/** Returns the tunnels of one apiserver whose paths contain `path`, from its audit log. */
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

/** Returns a text about the first line that differs. */
function difference(one: string, other: string): string {
  const [a, b] = [one.split("\n"), other.split("\n")];
  const at = a.findIndex((line, index) => line !== b[index]);
  const line = at < 0 ? a.length : at;
  return `directly "${a[line] ?? "nothing more"}", here "${b[line] ?? "nothing more"}"`;
}

/**
 * Returns what is wrong with the outcome. Undefined if the operation succeeded and printed what it prints directly, or
 * if the failure of an apiserver explains the difference.
 */
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

/**
 * Returns a table with a row for each operation of each client; with `byClient`, for each client. "5 of 6" means that
 * five of six runs were right and printed what the direct run printed.
 */
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
