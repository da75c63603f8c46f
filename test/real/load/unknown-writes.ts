/**
 * Which failures of writes are explained by the failure of an apiserver: those of a write that this apiserver received
 * or may have received. No proxy can know whether the write was executed, and a repeated write might be executed as
 * well (docs/compatibility.md). The failure of a read is never explained.
 */
import type { Said } from "../rig/said.ts";

/**
 * One fault, from its start until the apiserver is ready again, in Unix milliseconds. `until` is Infinity as long as
 * the fault lasts.
 */
export type Outage = { readonly backend: string; readonly since: number; readonly until: number };

/**
 * How long after a fault it still explains a failure. An apiserver whose process was stopped, or whose packets were
 * dropped, closes its connections only after the fault.
 */
const marginMs = 2_000;
/**
 * Largest difference in milliseconds between an entry of the proxy's log and the client's report of the same failure,
 * in either order.
 */
const reportedMs = 2_000;

const writes = ["POST", "PUT", "PATCH", "DELETE", "DELETECOLLECTION"];
const codes = ["backend-lost", "outcome-unknown"];

export function isWithin(outages: readonly Outage[], at: number): boolean {
  return outages.some(({ since, until }) => at >= since && at <= until + marginMs);
}

/**
 * True if the entry is about an apiserver that had a fault at that moment. `key` is the field of the entry that names
 * the apiserver.
 */
export function isOfOutage(entry: Said, key: "backend" | "from", outages: readonly Outage[]): boolean {
  return isWithin(
    outages.filter(({ backend }) => backend === entry[key]),
    entry.ts,
  );
}

/** True if the entry is a `request.failed` of a write to an apiserver that had a fault at that moment. */
export function isUnknownWrite(entry: Said, outages: readonly Outage[]): boolean {
  const { msg, verb = "", code = "", backend, err = "" } = entry as Said & Readonly<Record<string, string>>;
  const isWrite = msg === "request.failed" && writes.includes(verb) && codes.includes(code);
  return isWrite && err.startsWith(`Backend ${backend} `) && isOfOutage(entry, "backend", outages);
}

/** Matches the error of a write that watchkeeper had sent to an apiserver that then failed. */
export const isUnknown =
  /watchkeeper: .*(whether the request was executed is unknown|was lost before it answered)/;

/** True if a client's text contains the error message of this log entry. */
export function isQuoted(entry: Said, text: string): boolean {
  return text.includes(`watchkeeper: ${String(entry["err"])}`);
}

/**
 * Removes from `entries` the entry whose message a client's text contains, so that each entry explains only one
 * failure. `at` is when the client reported the failure. Returns false if there is no such entry.
 */
export function takeQuoted(entries: Said[], text: string, at: number): boolean {
  const index = entries.findIndex((entry) => Math.abs(entry.ts - at) <= reportedMs && isQuoted(entry, text));
  if (index >= 0) entries.splice(index, 1);
  return index >= 0;
}
