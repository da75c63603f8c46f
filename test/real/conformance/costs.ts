/**
 * What the failure of an apiserver may cost a spec (docs/compatibility.md). In the same place, a client of a single
 * apiserver that fails would get a broken connection.
 */
import { isOfOutage, isQuoted, isUnknownWrite, type Outage } from "../load/unknown-writes.ts";
import type { Said } from "../rig/said.ts";
import type { Result } from "./e2e.ts";

/**
 * How long the proxy's log entry may come after the end of a watch, in milliseconds: the proxy logs all ends within a
 * second as one line.
 */
const journalMs = 2_000;

/**
 * Resources that the specs `Watchers` and `CustomResourceDefinition Watch` watch, without a version and without
 * bookmarks. No other spec fails with the text `closed`.
 */
const watched = new Set(["/configmaps", "mygroup.example.com/noxus"]);
const closed = "Watch closed unexpectedly";

/**
 * Returns the cost that explains the spec's failure, or undefined if the failure is a defect of the proxy. `journal` is
 * what the proxy logged.
 */
export function costOf(
  { message, startedAt, failedAt, namespaces }: Result,
  journal: readonly Said[],
  outages: readonly Outage[],
): string | undefined {
  const during = journal.filter(({ ts }) => ts >= startedAt && ts <= failedAt + journalMs);
  // A write was in progress on the apiserver that failed. The proxy does not repeat it, because it might then be
  // executed twice.
  const unknown = during.filter((entry) => isUnknownWrite(entry, outages));
  if (unknown.some((entry) => isQuoted(entry, message))) return "outcome of a write unknown";
  if (unknown.some((entry) => isOfNode(entry, namespaces))) return "outcome of a node's write unknown";
  if (!message.includes(closed)) return undefined;
  // The watch has delivered only ADDED events. So nothing proves that its initial events are complete, and no other
  // apiserver can continue the watch (docs/watch.md, W3).
  const isEnded = during.some(({ msg, reason, resource, ...entry }) => {
    const isInitial = msg === "watches.ended" && reason === "initial_events" && watched.has(String(resource));
    return isInitial && isOfOutage({ msg, ...entry }, "from", outages);
  });
  return isEnded ? "watch ended within its initial events" : undefined;
}

/**
 * True if the write is one by which KWOK updates a pod of these namespaces. KWOK repeats a write only after 429, 503
 * and 504, so after a 502 the pod's status stays unchanged.
 */
function isOfNode({ code, userAgent, URI }: Said, namespaces: readonly string[]): boolean {
  if (code !== "backend-lost" || !String(userAgent).startsWith("kwok/")) return false;
  return namespaces.some((name) => String(URI).startsWith(`/api/v1/namespaces/${name}/pods/`));
}
