/**
 * Decides what happens to a watch when its upstream stream is over, by the table of watch.md §5.1. The watch continues
 * on another backend if possible. Otherwise it ends between two events, because a reset would make client-go list
 * everything again (D5). `expired-version.ts` handles a backend that refuses the watch's version (410).
 */
import { limits } from "../../base/limits.ts";
import type { Start } from "../../kube/watch-request.ts";
import { watchLimits } from "../limits.ts";
import type { Phase } from "./session-progress.ts";

/**
 * How the stream ended. unanswered: without a response head. ended: with END_STREAM. broken: by a reset, with a lost or
 * silent connection, or because the stream hangs.
 */
export type Over = "unanswered" | "ended" | "broken";

export type Ending = {
  readonly over: Over;
  readonly phase: Phase;
  readonly start: Start;
  /** True if the proxy knows a version from which another backend can continue. */
  readonly isResumable: boolean;
  /** Ms since the client's request. */
  readonly ageMs: number;
  /** Ms until the client's own deadline; undefined: no deadline. */
  readonly leftMs: number | undefined;
  /** True if the client reads too slowly (`ClientWriter.isBlocked`). */
  readonly isBlocked: boolean;
  /** True if the proxy knows why the backend ends its streams: GOAWAY, failing readiness, or an operator's command. */
  readonly isDraining: boolean;
  /**
   * True if the proxy, not the client, requested the stream. If the client set no deadline, the stream's timeout is
   * then the rest of `limits.watchMostMs`.
   */
  readonly isOurs: boolean;
  /** True if the watch was already resumed after an unexplained end and has got nothing new since. */
  readonly isRepeated: boolean;
  /** Number of events forwarded since the initial events ended; without initial events, since the request. */
  readonly liveEvents: number;
  /** Ms since the initial events ended; without initial events, since the request. */
  readonly liveMs: number;
};

/**
 * What the proxy does when a stream is over. resume: continue on another backend from a version. replay: send the
 * client's own request again. relay: forward the end as it is. end: end the client's stream between two events, after
 * the ms that `endOf` returns. reset: reset the client's stream, which is the only correct end for undecodable data.
 */
export type Verdict = { readonly kind: "resume" | "replay" | "relay" | "end" | "reset" };

const resume: Verdict = { kind: "resume" };
const replay: Verdict = { kind: "replay" };
const relay: Verdict = { kind: "relay" };
const end: Verdict = { kind: "end" };
const reset: Verdict = { kind: "reset" };

export function verdictOn(ending: Ending): Verdict {
  if (ending.over === "unanswered") return replay;
  // The client has received an ERROR event, after which no event may follow.
  if (ending.phase === "ended") return relay;
  return ending.over === "ended" ? onEnd(ending) : onBreak(ending);
}

function onEnd(ending: Ending): Verdict {
  if (ending.phase === "opaque" || isDue(ending)) return relay;
  // An apiserver ends the watch of a slow client on purpose (watch.md §5.5). If the proxy resumed such a watch, no
  // apiserver could get rid of the slow client.
  if (ending.isBlocked) return end;
  // If the backend is not draining, the cause of the end is unknown. For example, the backend may have initialised its
  // watch cache again, or a CRD may have changed. The proxy then tries one resume.
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

/** True if the client has got no event and its request can be repeated, unlike a watch from "now" (watch.md W3). */
function isUntouched({ phase, start }: Ending): boolean {
  return phase === "opening" && start !== "now";
}

/**
 * True if the watch ended when it was due: at the client's deadline or, without one, at the server's own timeout of
 * half an hour to an hour (watch.md §1.2). If a draining server ended it early, or the proxy set the stream's timeout,
 * the watch may continue up to the longest timeout that a server sets.
 */
function isDue({ leftMs, ageMs, isOurs, isDraining }: Ending): boolean {
  if (leftMs !== undefined) return isDeadline(leftMs);
  return (
    ageMs >= (isOurs || isDraining ? limits.watchMostMs - watchLimits.watchDueMs : watchLimits.watchServerMs)
  );
}

/**
 * True if a watch that ends now counts as ended by the client's deadline. `leftMs`: ms until the deadline; undefined:
 * no deadline.
 */
export function isDeadline(leftMs: number | undefined): boolean {
  return leftMs !== undefined && leftMs <= watchLimits.watchDueMs;
}

/**
 * Returns the ms to wait before the proxy ends the watch. If a watch ends within a second without events, client-go
 * treats this as a failure and relists (watch.md §7).
 */
export function endOf(ending: Pick<Ending, "phase" | "liveEvents" | "liveMs">): number {
  const { phase, liveEvents, liveMs } = ending;
  if (phase === "ended" || phase === "opaque") return 0;
  return liveEvents > 0 ? 0 : Math.max(0, watchLimits.shortWatchMs - liveMs);
}

/**
 * Why a watch moved to another backend. lost: its stream was reset, or its connection was lost. ended: its backend
 * ended the stream for an unknown reason. suspect: its backend or connection did not answer, or its cache lagged.
 * draining: its backend is draining. hung: its stream got no bookmarks. stale: its cache is stalled. rebalance: to
 * balance the load. operator: by an operator's command. expired: the version in the client's request was too old for
 * the backend that got it.
 */
type MoveReason =
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
 * Why the proxy requests another stream for a watch. refreshed: to get one bookmark (bookmark-refresh.ts). sentinel: to
 * compare two watch caches for as long as two backends are ready (D13, sentinels.ts).
 */
export type AskReason = MoveReason | "refreshed" | "sentinel";

/** How a watch continued on another backend, or on another stream of the same backend. */
export type Move = {
  readonly reason: AskReason;
  readonly from: string;
  readonly to: string;
  /** Ms since the earlier stream was lost or became suspect. */
  readonly ms: number;
};

/** Why a watch should leave a stream that still works. */
export type LeaveReason = "draining" | "hung" | "rebalance" | "operator";

/**
 * Why the proxy ended a watch that its client still wanted. The first four concern a lost stream: the client did not
 * have all initial events (initial_events); the watch began at an unknown version and had no event (start_from_now); an
 * event was out of order or had no version (out_of_order); the client read too slowly (slow_client). no_progress:
 * resumed streams brought no new event. refused: a backend rejected the request, or the client's credential has
 * expired. expired: no backend has the version any more (410). not_found: no backend serves the resource any more.
 * no_backend: no backend accepted the watch in time. drained: the proxy is draining. stale: the watch could not leave a
 * stalled cache. version_rollback: etcd's versions have gone back. deadline_missed: the backend did not end the watch
 * at the client's deadline.
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

export function moveReason(over: Over, isDraining: boolean): MoveReason {
  if (isDraining) return "draining";
  return over === "ended" ? "ended" : "lost";
}

export function endReason({ isBlocked, isRepeated, phase }: Ending): EndReason {
  if (isBlocked) return "slow_client";
  if (isRepeated) return "no_progress";
  if (phase === "opening") return "start_from_now";
  return phase === "listing" ? "initial_events" : "out_of_order";
}
