/** What operators print: one JSON object a line, between the lines of their libraries' own logs. */
import { readFileSync } from "node:fs";
import { isUnknownWrite, isWithin, type Outage, takeQuoted } from "../load/unknown-writes.ts";
import type { Said } from "../rig/said.ts";

/**
 * leading, lost: the process became leader, or lost its Lease. error: a request failed in a way that the operator's code or
 * its library noticed. closed: a watch ended, where the library says so.
 */
export type Line = {
  readonly event: "leading" | "lost" | "error" | "closed";
  readonly at: number;
  readonly text: string;
};

/** A line, and the operator that printed it. */
export type Told = Line & { readonly who: string };

/** A library may write into its log between the object and the end of its line. */
const object = /^\{"event":"[a-z]+","at":\d+,"text":"(?:[^"\\]|\\.)*"\}/;

export function linesOf(log: string): readonly Line[] {
  return log.split("\n").flatMap((line) => {
    const [found] = object.exec(line) ?? [];
    return found === undefined ? [] : [JSON.parse(found) as Line];
  });
}

export function readLines(logFile: string, since: number, until: number): readonly Line[] {
  return linesOf(readFileSync(logFile, "utf8")).filter(({ at }) => at >= since && at < until);
}

/** The connection ended before an answer: what clients of a proxy see that sends none in the apiserver's place. */
const isBroken =
  /EOF|SendRequest|ECONNRESET|socket hang up|connection (reset|lost|closed|was closed)|prematurely|upstream connect error/i;

export type Explained = {
  /** Writes that were in flight at an apiserver when it failed: whether they were executed, only it could tell. */
  readonly unknownWrites: readonly Told[];
  readonly errors: readonly Told[];
};

/**
 * Tells errors of operators from writes of unknown outcome, by watchkeeper's own journal: each entry explains one line. An
 * entry that the fault does not explain, such as a read of any client, is an error itself.
 */
export function explain(
  lines: readonly Told[],
  journal: readonly Said[],
  outages: readonly Outage[],
): Explained {
  const failed = journal.filter(({ msg }) => msg === "request.failed");
  const left = failed.filter((entry) => isUnknownWrite(entry, outages));
  const unknownWrites = lines.filter(({ text, at }) => takeQuoted(left, text, at));
  const own = failed
    .filter((entry) => !isUnknownWrite(entry, outages))
    .map(
      (entry) => ({ event: "error", at: entry.ts, who: "watchkeeper", text: JSON.stringify(entry) }) as const,
    );
  return { unknownWrites, errors: [...lines.filter((line) => !unknownWrites.includes(line)), ...own] };
}

/** The same through a rival, which has no journal: a write that ended in a broken connection while an apiserver failed. */
export function explainByTime(lines: readonly Told[], outages: readonly Outage[]): Explained {
  const isUnknown = ({ text, at }: Told): boolean =>
    !text.startsWith("GET ") && isBroken.test(text) && isWithin(outages, at);
  return {
    unknownWrites: lines.filter(isUnknown),
    errors: lines.filter((line) => !isUnknown(line)),
  };
}
