/** What one upstream stream of a watch would have shown of its backend's cache, and what its own silence means. */
import { limits } from "../../base/limits.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import type { CacheProgress, LagSuspicion } from "./cache-progress.ts";
import { watchLimits } from "./limits.ts";

/** Times of one watch, as clock readings; -1 for what has not happened. */
export type Silence = {
  readonly lastEventAt: number;
  readonly lastBookmarkAt: number;
  /** Does something wait for the client, whose window is shut? Then the silence may be its own. */
  readonly isBlocked: boolean;
};

/**
 * True if a watch has missed two bookmarks in a row. One that never had any may be silent for ever (watch.md §6.2). Before
 * anything follows, another request is sent on its connection.
 */
export function isHung({ lastEventAt, lastBookmarkAt, isBlocked }: Silence, now: number): boolean {
  return lastBookmarkAt >= 0 && !isBlocked && now - lastEventAt >= watchLimits.hungMs;
}

/**
 * True if a stream goes on from a version that its backend has not reached, although its cache moves. No cache lags so far
 * for so long: etcd was restored from a backup, say, and versions went back. The apiserver takes such a watch and is silent
 * until they have passed that version (k/k 107457, watch.md §11 row 13); a cache that does not move shows nothing.
 */
export function isRewound(
  { from, since }: Pick<Coverage, "from" | "since">,
  { version, stillSince }: CacheProgress,
  now: number,
): boolean {
  const isMoving = stillSince > since;
  return isMoving && now - since >= watchLimits.caughtUpMs && compareVersions(version, from) < 0;
}

/** What one upstream stream of a watch must show of its backend's cache. */
export type Coverage = {
  /** The version that it was asked from; "" when none was named. */
  readonly from: string;
  /** When its answer was taken. */
  readonly since: number;
  /** Does it see all of the resource, in every namespace? */
  readonly isWhole: boolean;
  readonly hasBookmarks: boolean;
};

/**
 * True if this stream would have shown by now what others have, if its backend had it. One that sees all of the resource would have
 * at once; any other with its next bookmark, which comes within 62.3 s of a cache that moves (watch.md §6.1). This
 * covers watches that were moved there, too (§6.4). `wholeMs`: how long the first of them is waited for.
 */
export function wouldShow(
  { from, since, isWhole, hasBookmarks }: Coverage,
  suspicion: LagSuspicion,
  now: number,
  wholeMs: number = limits.behindMs,
): boolean {
  const { stillSince } = suspicion.cache;
  const withinMs = isWhole ? wholeMs : watchLimits.caughtUpMs;
  if (!isWhole && !(hasBookmarks && suspicion.hasBookmarks)) return false;
  return suspicion.missing.some(({ version, at }) => {
    // Opened about when the event came, it may have been given a state that has it: that shows nothing.
    const isEarlier = since + watchLimits.sightMs <= at;
    return isEarlier && compareVersions(from, version) < 0 && now - Math.max(at, stillSince) >= withinMs;
  });
}
