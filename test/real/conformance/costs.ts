/**
 * What the failure of an apiserver may cost a spec, as docs/compatibility.md says: a client of a single apiserver that
 * fails would get a broken connection in the same place.
 */
import { isOfOutage, isQuoted, isUnknownWrite, type Outage } from "../load/unknown-writes.ts";
import type { Said } from "../rig/said.ts";
import type { Result } from "./e2e.ts";

/** The proxy logs the ends of a second in one line. */
const journalMs = 2_000;

/**
 * What the only specs with this text watch, `Watchers` and `CustomResourceDefinition Watch`: without a version, and without
 * bookmarks.
 */
const watched = new Set(["/configmaps", "mygroup.example.com/noxus"]);
const closed = "Watch closed unexpectedly";

/** Returns the cost that explains the failure, or undefined: then it is a defect. `journal`: what the proxy logged. */
export function costOf(
  { message, startedAt, failedAt, namespaces }: Result,
  journal: readonly Said[],
  outages: readonly Outage[],
): string | undefined {
  const during = journal.filter(({ ts }) => ts >= startedAt && ts <= failedAt + journalMs);
  // A write was in flight on the apiserver that was struck. A second one might run twice.
  const unknown = during.filter((entry) => isUnknownWrite(entry, outages));
  if (unknown.some((entry) => isQuoted(entry, message))) return "outcome of a write unknown";
  if (unknown.some((entry) => isOfNode(entry, namespaces))) return "outcome of a node's write unknown";
  if (!message.includes(closed)) return undefined;
  // The watch has seen ADDED only: nothing proves that its initial events are over, so no other apiserver can continue
  // it (docs/watch.md, W3).
  const isEnded = during.some(({ msg, reason, resource, ...entry }) => {
    const isInitial = msg === "watches.ended" && reason === "initial_events" && watched.has(String(resource));
    return isInitial && isOfOutage({ msg, ...entry }, "from", outages);
  });
  return isEnded ? "watch ended within its initial events" : undefined;
}

/** KWOK repeats a write after 429, 503 and 504 only, so after 502 the pod's status stays as it was. */
function isOfNode({ code, userAgent, URI }: Said, namespaces: readonly string[]): boolean {
  if (code !== "backend-lost" || !String(userAgent).startsWith("kwok/")) return false;
  return namespaces.some((name) => String(URI).startsWith(`/api/v1/namespaces/${name}/pods/`));
}
