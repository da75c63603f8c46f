/**
 * What the failure of an apiserver explains: a write that this apiserver had received or could have received. No proxy can
 * know whether it was executed, and a second one might be executed as well (docs/compatibility.md). A read is never explained.
 */
import type { Said } from "../rig/said.ts";

/** One fault, from its beginning until the apiserver is ready again; `until` is Infinity before. In Unix milliseconds. */
export type Outage = { readonly backend: string; readonly since: number; readonly until: number };

/** An apiserver that was stopped or cut off closes its connections when it can run or send again, which is after the fault. */
const marginMs = 2_000;
/** From the proxy's journal entry to the line in which a client reports the failure, or the other way round. */
const reportedMs = 2_000;

const writes = ["POST", "PUT", "PATCH", "DELETE", "DELETECOLLECTION"];
const codes = ["backend-lost", "outcome-unknown"];

export function isWithin(outages: readonly Outage[], at: number): boolean {
  return outages.some(({ since, until }) => at >= since && at <= until + marginMs);
}

/** True if the entry is of an apiserver that had a fault at that moment. `key`: of the field that names the apiserver. */
export function isOfOutage(entry: Said, key: "backend" | "from", outages: readonly Outage[]): boolean {
  return isWithin(
    outages.filter(({ backend }) => backend === entry[key]),
    entry.ts,
  );
}

/** True if an entry `request.failed` is a write to the apiserver that had a fault at that moment. */
export function isUnknownWrite(entry: Said, outages: readonly Outage[]): boolean {
  const { msg, verb = "", code = "", backend, err = "" } = entry as Said & Readonly<Record<string, string>>;
  const isWrite = msg === "request.failed" && writes.includes(verb) && codes.includes(code);
  return isWrite && err.startsWith(`Backend ${backend} `) && isOfOutage(entry, "backend", outages);
}

/** The text of a write that watchkeeper sent to the apiserver that failed. */
export const isUnknown =
  /watchkeeper: .*(whether the request was executed is unknown|was lost before it answered)/;

/** True if a client's text quotes the response that the entry is about. */
export function isQuoted(entry: Said, text: string): boolean {
  return text.includes(`watchkeeper: ${String(entry["err"])}`);
}

/**
 * Takes the entry that a client's text quotes out of `entries`, so that each entry explains one failure. `at`: when the
 * client reported it. Returns false if there is none.
 */
export function takeQuoted(entries: Said[], text: string, at: number): boolean {
  const index = entries.findIndex((entry) => Math.abs(entry.ts - at) <= reportedMs && isQuoted(entry, text));
  if (index >= 0) entries.splice(index, 1);
  return index >= 0;
}
