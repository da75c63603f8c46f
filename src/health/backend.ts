/**
 * What we hold of one backend, and how evidence changes it.
 *
 *     unknown --dial ok--> ready --dial failed, lane silent--> dead --dial ok--> ready
 *
 * suspect and draining are the verdicts of detectors that come with probing; choose and the page know them already.
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
    default:
      evidence satisfies never;
      return state;
  }
}

/** Why, in the operator's words. */
export function reasonOf(evidence: Evidence): string {
  if (evidence.kind === "dial")
    return evidence.ok ? "a new session answered" : `dial failed: ${evidence.reason}`;
  return `PING unanswered for ${Math.round(evidence.ms)} ms`;
}
