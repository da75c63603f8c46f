/** What operators print: one JSON object a line, between the lines of their libraries' own logs. */
import { readFileSync } from "node:fs";
import { isUnknown } from "../conformance/costs.ts";

/**
 * leading, lost: the process became leader, or lost its Lease. error: a request failed in a way that the operator's code or
 * its library noticed. closed: a watch ended, where the library says so.
 */
export type Line = {
  readonly event: "leading" | "lost" | "error" | "closed";
  readonly at: number;
  readonly text: string;
};

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

/**
 * True if a write was in flight at the apiserver that failed: whether it took effect, only that apiserver could tell. watchkeeper
 * says so in its answer; through a rival, the end of the connection says it.
 */
export function isOfUnknownOutcome({ text }: Line, isRival = false): boolean {
  if (text.startsWith("GET ")) return false;
  return isUnknown.test(text) || (isRival && isBroken.test(text));
}
