/**
 * What the failure of an apiserver may cost a spec, as docs/compatibility.md says: a client of a single apiserver that
 * fails would get a broken connection in the same place.
 */
import type { Said } from "../rig/said.ts";
import type { Result } from "./e2e.ts";

/** The proxy logs the ends of a second in one line. */
const journalMs = 2_000;

/** The texts of a write that watchkeeper sent to the apiserver that failed. */
export const isUnknown =
  /watchkeeper: .*(whether the request was executed is unknown|was lost before it answered)/;

/**
 * Returns the cost that explains the failure, or undefined: then it is a defect. `journal`: what the proxy logged;
 * `nodes`: what KWOK logged.
 */
export function costOf(
  { message, seconds, endedAt, namespaces }: Result,
  journal: readonly Said[],
  nodes: readonly string[],
): string | undefined {
  // A write was in flight on the apiserver that was struck. A second one might run twice.
  if (isUnknown.test(message)) return "outcome of a write unknown";
  // KWOK repeats a write after 429, 503 and 504 only, so the pod's status stays as it was.
  const ofPods = nodes.filter((line) => line.includes("failed to apply stage") && isUnknown.test(line));
  if (ofPods.some((line) => namespaces.some((name) => line.includes(`"pod":"${name}/`))))
    return "outcome of a node's write unknown";
  if (!message.includes("Watch closed unexpectedly")) return undefined;
  // The watch began without a version and without bookmarks, and has seen ADDED only: nothing proves that its initial
  // events are over, so no other apiserver can continue it (docs/watch.md, W3).
  const ended = journal.some(({ msg, ts, ...more }) => {
    const isBurst = msg === "watches.ended" && more["reason"] === "initial_events";
    return isBurst && ts > endedAt - seconds * 1_000 && ts < endedAt + journalMs;
  });
  return ended ? "watch ended within its initial events" : undefined;
}
