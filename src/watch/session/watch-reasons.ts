/** Why a watch moved, or ended: what is known when a leg is over, and the words that metrics and journal show. */
import type { Ending, Over } from "./ending.ts";
import type { Progress } from "./progress.ts";
import type { Times } from "./watch-context.ts";

/** Why a watch went to another backend; `asked`: by an operator, `expired`: the first that was asked did not know its version any more. */
export type MoveReason =
  | "lost"
  | "ended"
  | "suspect"
  | "draining"
  | "hung"
  | "stale"
  | "rebalance"
  | "operator"
  | "expired";

/**
 * Why a watch has a second leg, or looks for its next; `refreshed`: for a bookmark (bookmark-refresh.ts), and never to stay;
 * `sentinel`: to be compared with the first for as long as two backends are ready (sentinels.ts).
 */
export type AskReason = MoveReason | "refreshed" | "sentinel";

/** Why a watch is to leave a leg that serves it. */
export type LeaveReason = "draining" | "hung" | "rebalance" | "operator";

/** Why a watch ended although its client wanted more of it; `not-found`: no backend serves its resource any more (a CRD that was deleted). */
export type EndReason =
  | "initial_events"
  | "start_from_now"
  | "out_of_order"
  | "slow_client"
  | "no_progress"
  | "refused"
  | "expired"
  | "not_found"
  | "no_backend"
  | "drained"
  | "stale"
  | "version_rollback"
  | "deadline_missed";

/** What is known when the first leg of a watch is over. */
export function endingOf(
  { phase, start, resumeVersion, liveEvents }: Progress,
  times: Times,
  how: Pick<Ending, "over" | "isDraining" | "isOurs" | "isBlocked" | "isRepeated">,
): Ending {
  return { ...times, ...how, phase, start, liveEvents, isResumable: resumeVersion !== undefined };
}

/** Why a watch whose leg is over goes on elsewhere. */
export function moveReason(over: Over, isDraining: boolean): MoveReason {
  if (isDraining) return "draining";
  return over === "ended" ? "ended" : "lost";
}

/** Why a watch that cannot go on ends. */
export function endReason({ isBlocked, isRepeated, phase }: Ending): EndReason {
  if (isBlocked) return "slow_client";
  if (isRepeated) return "no_progress";
  if (phase === "opening") return "start_from_now";
  return phase === "listing" ? "initial_events" : "out_of_order";
}
