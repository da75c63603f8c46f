/** Helpers for tests that compare the watch caches of two backends. */

import { type CacheProgress, CacheTracker, type LagSuspicion } from "../../src/watch/cache/cache-progress.ts";
import type { WatchEvent } from "../../src/watch/codec/event.ts";

export const bookmark = (version: string, endsInitialEvents = false): WatchEvent => ({
  type: "BOOKMARK",
  version,
  endsInitialEvents,
  code: 0,
  reason: "",
  oldest: "",
  key: "",
});

/** Returns the progress of the caches of the backends a and b, each of which serves one watch of pods. */
export function two(): { caches: CacheTracker; a: CacheProgress; b: CacheProgress } {
  const caches = new CacheTracker();
  const a = caches.of("a", "/pods");
  const b = caches.of("b", "/pods");
  a.join(false, 0);
  b.join(false, 0);
  return { caches, a, b };
}

export const names = (caches: CacheTracker, now: number): string[] =>
  caches.stalling(now).map(({ cache, version, behindMs }) => `${cache.backend} ${version} ${behindMs}`);

export function suspected(caches: CacheTracker, now: number): LagSuspicion {
  const [suspicion] = caches.stalling(now);
  if (suspicion === undefined) throw new Error("No cache is suspected");
  return suspicion;
}
