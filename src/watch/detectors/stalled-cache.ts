/**
 * Finds caches that are stalled although their backends answer (F5). No response of such a backend shows the stall, but
 * the events of other backends do. The watches of a stalled cache move to other backends, and its backend gets no new
 * requests for the cache's resource.
 */
import type { Clock } from "../../base/clock.ts";
import { Interval } from "../../base/interval.ts";
import { inSlices, stop } from "../../base/slices.ts";
import type { Journal } from "../../events/journal.ts";
import {
  type CacheProgress,
  type CacheTracker,
  type LagSuspicion,
  wouldShow,
} from "../cache/cache-progress.ts";
import { watchLimits } from "../limits.ts";
import type { Migrations } from "../migration/migrations.ts";
import type { WatchSession } from "../session/watch-session.ts";
import type { BookmarkRefresher } from "./bookmark-refresh.ts";

type StalledCacheParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly caches: CacheTracker;
  readonly migrations: Migrations;
  readonly refresher: Pick<BookmarkRefresher, "forgotten">;
};

export class StalledCacheDetector extends Interval {
  readonly #parts: StalledCacheParts;
  readonly #searchesUnderWay = new Set<CacheProgress>();

  constructor(parts: StalledCacheParts) {
    super(parts.clock, watchLimits.stallLookMs, () => this.#look());
    this.#parts = parts;
  }

  #look(): void {
    const { caches, journal, clock, refresher } = this.#parts;
    const now = clock.now();
    for (const cache of caches.takeForgetful()) refresher.forgotten(cache);
    for (const { backend, resource, version } of caches.takeRecovered())
      journal.write({ kind: "cache.recovered", backend, resource, version });
    const suspicions = caches.stalling(now).filter(({ cache }) => !cache.isStalled(now));
    for (const suspicion of suspicions)
      if (suspicion.isProven) this.#markStalled(suspicion, "bookmark");
      else if (mayBeShown(suspicion)) this.#searchProof(suspicion);
  }

  #searchProof(suspicion: LagSuspicion): void {
    const { clock, migrations } = this.#parts;
    const { cache } = suspicion;
    if (this.#searchesUnderWay.has(cache)) return;
    this.#searchesUnderWay.add(cache);
    const prove = (watch: WatchSession): unknown => {
      const now = clock.now();
      if (!provesLag(watch, suspicion, now)) return undefined;
      if (!cache.isStalled(now)) this.#markStalled(suspicion, "watch");
      return stop;
    };
    inSlices(clock, migrations.watches.of(cache.resource), prove, () => this.#searchesUnderWay.delete(cache));
  }

  #markStalled(suspicion: LagSuspicion, detector: "bookmark" | "watch"): void {
    const { caches, journal, clock, migrations } = this.#parts;
    const { cache, version, behindMs } = suspicion;
    caches.markStalled(suspicion, clock.now());
    const { backend, resource, version: shown, watches } = cache;
    journal.write({
      kind: "cache.stalled",
      backend,
      resource,
      version: shown,
      peersVersion: version,
      behindMs: Math.round(behindMs),
      detector,
      watches,
    });
    inSlices(clock, migrations.watches.of(resource), (watch) => {
      if (watch.cache === cache) migrations.migrateNow(watch);
    });
  }
}

/**
 * True if a watch can prove the stall. A watch of the whole resource can do so immediately, any other watch only when a
 * bookmark is overdue.
 */
function mayBeShown({ cache, behindMs, hasBookmarks }: LagSuspicion): boolean {
  return cache.wholeWatches > 0 || (hasBookmarks && behindMs >= watchLimits.caughtUpMs);
}

function provesLag(watch: WatchSession, suspicion: LagSuspicion, now: number): boolean {
  const stream = watch.compared.find(({ cache }) => cache === suspicion.cache);
  if (stream === undefined || !watch.progress.isReadable || watch.isBlocked) return false;
  const { isWhole, isInjected, isRepeating, hasBookmarks: hasOwn } = watch.asked;
  const { isOurs, from } = stream.reading;
  // If the request for this stream names no version, it repeats the client's own request, which does not ask for the
  // bookmarks that only the proxy wants.
  const hasOurs = isInjected && !(isOurs && from === "");
  const hasBookmarks = (hasOwn || hasOurs) && !isRepeating;
  const coverage = { from, since: stream.acceptedAt, isWhole, hasBookmarks };
  return wouldShow(coverage, suspicion, now);
}
