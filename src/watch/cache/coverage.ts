/** What one upstream stream of a watch would have delivered of its backend's cache, and what its silence means. */
import { limits } from "../../base/limits.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import type { CacheProgress, LagSuspicion } from "./cache-progress.ts";
import { watchLimits } from "./limits.ts";

/**
 * True if a stream continues from a version that its backend has not reached, although its cache moves. No cache lags so
 * far for so long: etcd was restored from a backup, for example, and versions went back. The apiserver accepts such a
 * watch and sends nothing until its versions have passed that one (k/k 107457, watch.md §11 row 13). A cache that does
 * not move is no evidence.
 */
export function isRewound(
  { from, since }: Pick<Coverage, "from" | "since">,
  { version, stillSince }: CacheProgress,
  now: number,
): boolean {
  const isMoving = stillSince > since;
  return isMoving && now - since >= watchLimits.caughtUpMs && compareVersions(version, from) < 0;
}

/** What one upstream stream of a watch must deliver of its backend's cache. */
export type Coverage = {
  /** The version that it was requested from; "" if the request named none. */
  readonly from: string;
  /** When its response was accepted. */
  readonly since: number;
  /** True if it sees the whole resource, in every namespace. */
  readonly isWhole: boolean;
  readonly hasBookmarks: boolean;
};

/**
 * True if this stream would have delivered by now what others have, if its backend had it. A stream of the whole resource
 * would have at once. Any other would have with its next bookmark, which comes within 62.3 s from a cache that moves
 * (watch.md §6.1). This includes watches that were moved there (§6.4). `wholeMs`: the time allowed for a stream of the
 * whole resource.
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
    // A stream opened at about the time of the event may have got a state that includes it, so its silence is no
    // evidence.
    const isEarlier = since + watchLimits.sightMs <= at;
    return isEarlier && compareVersions(from, version) < 0 && now - Math.max(at, stillSince) >= withinMs;
  });
}
