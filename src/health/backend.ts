/**
 * What we hold of one backend, and how evidence changes it.
 *
 *     unknown --dial ok--> ready --a lane silent--> suspect --none silent any more--> ready
 *     any but dead --no lane left, dial failed--> dead --dial ok--> ready
 *
 * draining is the verdict of a detector that comes with probing; choose and the page know it already.
 */
import type { Evidence } from "./evidence.ts";

export const backendStates = ["unknown", "ready", "suspect", "dead", "draining"] as const;
export type BackendState = (typeof backendStates)[number];

/** What the data path may know of a backend. */
export type BackendView = { readonly name: string; readonly state: BackendState; readonly since: number };

/** Pure: the state after one more piece of evidence. */
export function judge(state: BackendState, evidence: Evidence): BackendState {
  switch (evidence.kind) {
    case "dial":
      if (evidence.ok) return "ready";
      return "dead";
    case "silence":
      return state === "dead" ? "dead" : "suspect";
    case "answer":
      return state === "suspect" ? "ready" : state;
    default:
      evidence satisfies never;
      return state;
  }
}

/** Why, in the operator's words. */
export function reasonOf(evidence: Evidence): string {
  if (evidence.kind === "dial")
    return evidence.ok ? "a new session answered" : `dial failed: ${evidence.reason}`;
  if (evidence.kind === "answer") return "PINGs are answered again";
  return `PING unanswered for ${Math.round(evidence.ms)} ms`;
}
