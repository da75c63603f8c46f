/**
 * What follows when an upstream stream of a watch is over: the table of watch.md §5.1. A watch that can continue on
 * another backend does. One that cannot ends between two events, since a reset of any kind makes client-go list
 * everything again (D5).
 */
import { limits } from "../../base/limits.ts";
import type { Start } from "../../kube/watch-request.ts";
import { watchLimits } from "../cache/limits.ts";
import type { Phase } from "./session-progress.ts";

/**
 * How the stream ended. `unanswered`: no response, not even a head. `ended`: END_STREAM. `broken`: a reset, a lost or
 * silent connection, a stream that hangs.
 */
export type Over = "unanswered" | "ended" | "broken";

export type Ending = {
  readonly over: Over;
  readonly phase: Phase;
  readonly start: Start;
  /** True if there is a version to resume at. */
  readonly isResumable: boolean;
  /** Time since the client's request. */
  readonly ageMs: number;
  /** Time until the client's own deadline; undefined if it set none. */
  readonly leftMs: number | undefined;
  /** True if data waits for the client because its window is shut. */
  readonly isBlocked: boolean;
  /** True if the proxy knows why the backend ends its streams: GOAWAY, its readiness, an operator. */
  readonly isDraining: boolean;
  /** True if the request was the proxy's own, which asks for the rest of the longest time (`limits.watchMostMs`). */
  readonly isOurs: boolean;
  /** True if an early end without a reason was already answered by a resume, and nothing new came since. */
  readonly isRepeated: boolean;
  /** Events forwarded to the client since its request, or since the end of the initial ones. */
  readonly liveEvents: number;
  /** How long ago that was. */
  readonly liveMs: number;
};

/**
 * `resume` at a version · `replay` the client's own request · `relay` the end as it is · `end` between two events, in
 * `endOf` ms · `reset`: the only correct end for a stream that could not be decoded.
 */
export type Verdict = { readonly kind: "resume" | "replay" | "relay" | "end" | "reset" };

const resume: Verdict = { kind: "resume" };
const replay: Verdict = { kind: "replay" };
const relay: Verdict = { kind: "relay" };
const end: Verdict = { kind: "end" };
const reset: Verdict = { kind: "reset" };

/** Returns the row of watch.md §5.1 that applies. Pure. */
export function verdictOn(ending: Ending): Verdict {
  if (ending.over === "unanswered") return replay;
  // Nothing may follow an ERROR.
  if (ending.phase === "ended") return relay;
  return ending.over === "ended" ? onEnd(ending) : onBreak(ending);
}

function onEnd(ending: Ending): Verdict {
  if (ending.phase === "opaque" || isDue(ending)) return relay;
  // The apiserver ended a slow watcher on purpose, and a resume would keep it for ever (watch.md §5.5).
  if (ending.isBlocked) return end;
  // Without a known reason the cause may be a cache that lists again or a CRD that changes: one resume is tried.
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

/** True if the client has got nothing yet and the request can be repeated. A `now` that has passed cannot (watch.md W3). */
function isUntouched({ phase, start }: Ending): boolean {
  return phase === "opening" && start !== "now";
}

/**
 * True if the end is that of the client's deadline, or of the server's own timeout, which also bounds how long old
 * credentials remain in use. A server chooses that timeout (half an hour to an hour, watch.md §1.2) only for a request
 * without one, and a draining server ends its watches before it: then the watch may continue for as long as any server
 * would have allowed.
 */
function isDue({ leftMs, ageMs, isOurs, isDraining }: Ending): boolean {
  if (leftMs !== undefined) return isDeadline(leftMs);
  return (
    ageMs >= (isOurs || isDraining ? limits.watchMostMs - watchLimits.watchDueMs : watchLimits.watchServerMs)
  );
}

/** True if a watch that ends now ends at its client's own deadline. One without a deadline (undefined) never does. */
export function isDeadline(leftMs: number | undefined): boolean {
  return leftMs !== undefined && leftMs <= watchLimits.watchDueMs;
}

/**
 * Returns the delay in ms before the end, if the verdict is to end. client-go treats a watch that ended within a second
 * without events as a failure, and relists (watch.md §7). After an ERROR, or undecodable data, a delay gains nothing.
 */
export function endOf(ending: Pick<Ending, "phase" | "liveEvents" | "liveMs">): number {
  const { phase, liveEvents, liveMs } = ending;
  if (phase === "ended" || phase === "opaque") return 0;
  return liveEvents > 0 ? 0 : Math.max(0, watchLimits.shortWatchMs - liveMs);
}

// --- why a watch moved, or ended: the reasons in metrics and journal ---

/**
 * Why a watch moved to another backend; `operator`: on command, `expired`: the first backend that was asked did not know
 * its version any more.
 */
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
 * Why a watch gets a second stream, or its next one; `refreshed`: for a bookmark (bookmark-refresh.ts), never to stay;
 * `sentinel`: to be compared with the first for as long as two backends are ready (sentinels.ts).
 */
export type AskReason = MoveReason | "refreshed" | "sentinel";

/** Why a watch should leave a stream that still serves. */
export type LeaveReason = "draining" | "hung" | "rebalance" | "operator";

/**
 * Why a watch ended although its client wanted more of it; `not_found`: no backend serves its resource any more (a
 * deleted CRD).
 */
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

/** Why a watch whose stream is over continues on another backend. */
export function moveReason(over: Over, isDraining: boolean): MoveReason {
  if (isDraining) return "draining";
  return over === "ended" ? "ended" : "lost";
}

/** Why a watch that cannot continue ends. */
export function endReason({ isBlocked, isRepeated, phase }: Ending): EndReason {
  if (isBlocked) return "slow_client";
  if (isRepeated) return "no_progress";
  if (phase === "opening") return "start_from_now";
  return phase === "listing" ? "initial_events" : "out_of_order";
}
