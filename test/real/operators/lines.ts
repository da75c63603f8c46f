/** The output of operators: one JSON object a line, between log lines of their libraries. */
import { readFileSync } from "node:fs";
import { isUnknownWrite, isWithin, type Outage, takeQuoted } from "../load/unknown-writes.ts";
import type { Said } from "../rig/said.ts";

/**
 * `leading`, `lost`: the process became leader, or lost its Lease. `error`: a request failed and the operator's code or
 * its library reported it. `closed`: a watch ended, if the library reports that.
 */
export type Line = {
  readonly event: "leading" | "lost" | "error" | "closed";
  readonly at: number;
  readonly text: string;
};

/** A line, and the name of the operator that printed it. */
export type Told = Line & { readonly who: string };

/** The object ends before the end of the line, because a library may write its own log text before the newline. */
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

/**
 * Error texts for a connection that ended before a response. Clients see them behind a proxy that sends no response of
 * its own for a lost apiserver.
 */
const isBroken =
  /EOF|SendRequest|ECONNRESET|socket hang up|connection (reset|lost|closed|was closed)|prematurely|upstream connect error/i;

export type Explained = {
  /**
   * Writes that were in progress at an apiserver when it failed. Only that apiserver knows whether they were executed.
   */
  readonly unknownWrites: readonly Told[];
  readonly errors: readonly Told[];
};

/**
 * Separates errors of operators from writes of unknown outcome, with the help of watchkeeper's log. Each log entry
 * explains one line. An entry that no fault explains, such as a failed read of any client, counts as an error itself.
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

/**
 * The same for a rival proxy, which has no such log: a write has an unknown outcome if its connection broke during a
 * fault.
 */
export function explainByTime(lines: readonly Told[], outages: readonly Outage[]): Explained {
  const isUnknown = ({ text, at }: Told): boolean =>
    !text.startsWith("GET ") && isBroken.test(text) && isWithin(outages, at);
  return {
    unknownWrites: lines.filter(isUnknown),
    errors: lines.filter((line) => !isUnknown(line)),
  };
}
