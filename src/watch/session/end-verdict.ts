/**
 * What follows when an upstream stream of a watch is over: watch.md §5.1's table. A watch that can go on elsewhere
 * does; one that cannot ends between two events, since a reset of any kind makes client-go list everything again (D5).
 */
import { limits } from "../../base/limits.ts";
import type { Start } from "../../kube/watch-request.ts";
import { watchLimits } from "../cache/limits.ts";
import type { Phase, Progress } from "./session-progress.ts";
import type { Times } from "./watch-context.ts";

/**
 * How it was over. `unanswered`: nothing came, not even a head. `ended`: END_STREAM. `broken`: a reset, a lost or
 * silent upstream connection, a stream that hangs.
 */
export type Over = "unanswered" | "ended" | "broken";

export type Ending = {
  readonly over: Over;
  readonly phase: Phase;
  readonly start: Start;
  /** Is there a version to resume at? */
  readonly isResumable: boolean;
  /** Since the client's request. */
  readonly ageMs: number;
  /** Until the client's own deadline; undefined when it set none. */
  readonly leftMs: number | undefined;
  /** Does something wait for the client, whose window is shut? */
  readonly isBlocked: boolean;
  /** Is it known why the backend ends its streams: GOAWAY, its readiness, an operator? */
  readonly isDraining: boolean;
  /** Was the request ours? Then it asked the server for the rest of the longest time (`limits.watchMostMs`). */
  readonly isOurs: boolean;
  /** Was an early end without a reason already answered by a resume, and nothing came since? */
  readonly isRepeated: boolean;
  /** Events that the client has seen since its request, or since the end of the initial ones. */
  readonly liveEvents: number;
  /** How long ago that was. */
  readonly liveMs: number;
};

/**
 * `resume` at a version · `replay` the client's own request · `relay` the end as it is · `end` between two events, in
 * `endOf` ms · `reset`, the only honest word for bytes that nobody understood.
 */
export type Verdict = { readonly kind: "resume" | "replay" | "relay" | "end" | "reset" };

const resume: Verdict = { kind: "resume" };
const replay: Verdict = { kind: "replay" };
const relay: Verdict = { kind: "relay" };
const end: Verdict = { kind: "end" };
const reset: Verdict = { kind: "reset" };

/** Pure: the row of watch.md §5.1 that fits. */
export function verdictOn(ending: Ending): Verdict {
  if (ending.over === "unanswered") return replay;
  // Behind an ERROR nothing may come.
  if (ending.phase === "ended") return relay;
  return ending.over === "ended" ? onEnd(ending) : onBreak(ending);
}

function onEnd(ending: Ending): Verdict {
  if (ending.phase === "opaque" || isDue(ending)) return relay;
  // The apiserver let go of a slow reader on purpose, and a resume would keep it for ever (watch.md §5.5).
  if (ending.isBlocked) return end;
  // Without a reason it may be a cache that lists anew or a CRD that changes: tried once.
  if (ending.isResumable && (ending.isDraining || !ending.isRepeated)) return resume;
  if (ending.isDraining && isUntouched(ending)) return replay;
  return end;
}

function onBreak(ending: Ending): Verdict {
  if (ending.phase === "opaque") return reset;
  if (ending.leftMs !== undefined && ending.leftMs <= 0) return relay;
  if (ending.isResumable) return resume;
  return isUntouched(ending) ? replay : end;
}

/** Nothing was promised yet. A `now` that has passed does not come back (watch.md W3). */
function isUntouched({ phase, start }: Ending): boolean {
  return phase === "opening" && start !== "now";
}

/**
 * True if the end is that of the client's deadline, or the server's own timeout, which also bounds for how long old credentials
 * hold. A server chooses that timeout (half an hour to an hour, watch.md §1.2) only for a request without one, and a server that
 * drains ends its watches before it: then the watch may go on for as long as any server would have let it.
 */
function isDue({ leftMs, ageMs, isOurs, isDraining }: Ending): boolean {
  if (leftMs !== undefined) return isDeadline(leftMs);
  return ageMs >= (isOurs || isDraining ? limits.watchMostMs - watchLimits.watchDueMs : limits.watchServerMs);
}

/** True if a watch that ends now ends at its client's own deadline. One without a deadline (undefined) never does. */
export function isDeadline(leftMs: number | undefined): boolean {
  return leftMs !== undefined && leftMs <= watchLimits.watchDueMs;
}

/**
 * In how many ms it may end, if that is the verdict. client-go takes a watch without events that ended within a second
 * for a failure, and relists (watch.md §7). Behind an ERROR, and behind what nobody understood, nothing is gained.
 */
export function endOf(ending: Pick<Ending, "phase" | "liveEvents" | "liveMs">): number {
  const { phase, liveEvents, liveMs } = ending;
  if (phase === "ended" || phase === "opaque") return 0;
  return liveEvents > 0 ? 0 : Math.max(0, watchLimits.shortWatchMs - liveMs);
}

// --- why a watch moved, or ended: the words that metrics and journal show ---

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
