/**
 * Keeps the resume versions of watches new enough for a backend that has just come back. The caches of such a backend
 * begin at its start (watch.md §5.4), so a watch on another backend could not move there if its last event or bookmark
 * is older. First the cache of the watch's own backend is made to follow etcd (progress-requests.ts). Then a second
 * stream is opened on that same backend, with a timeout so short that a bookmark comes at once (§6.1). Both streams are
 * merged as usual; only the watch's version changes.
 */
import type { Clock } from "../../base/clock.ts";
import { inSlices, stop } from "../../base/slices.ts";
import type { Journal } from "../../events/journal.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import type { ActiveRequests } from "../../proxy/request/active-requests.ts";
import type { Exchange } from "../../proxy/request/exchange.ts";
import type { PoolSet } from "../../proxy/upstream/pool-set.ts";
import type { CacheProgress } from "../cache/cache-progress.ts";
import { watchLimits } from "../cache/limits.ts";
import type { Migrations } from "../migration/migrations.ts";
import type { WatchSession } from "../session/watch-session.ts";
import {
  type BookmarkRefresh,
  isBehind,
  type ProgressCounts,
  ProgressRequests,
} from "./progress-requests.ts";

export type BookmarkRefresherParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly pools: PoolSet;
  readonly exchanges: ActiveRequests;
  readonly migrations: Migrations;
};

export class BookmarkRefresher {
  readonly #parts: BookmarkRefresherParts;
  readonly #progress: ProgressRequests;
  /** Watches whose version may be too old, and the clock reading up to which each must be proven complete. */
  readonly #old = new Map<WatchSession, number>();
  #isUnderWay = false;

  constructor(parts: BookmarkRefresherParts) {
    this.#parts = parts;
    this.#progress = new ProgressRequests(parts, (waited) => this.#add(waited));
  }

  /** Number of lists sent, by result. */
  get progressRequests(): ProgressCounts {
    return this.#progress.counts;
  }

  /** Refreshes the watches on other backends, because this backend is ready, with caches that begin now. */
  returned(backend: string): void {
    this.#begin(backend, () => true);
  }

  /** A cache of this backend has refused versions up to `refused`: refreshes watches elsewhere that are no newer. */
  forgotten({ backend, resource, refused }: Pick<CacheProgress, "backend" | "resource" | "refused">): void {
    const isOld = ({ resource: of, progress: { resumeVersion = "" } }: WatchSession): boolean =>
      of === resource && compareVersions(resumeVersion, refused) <= 0;
    this.#begin(backend, isOld);
  }

  /** Refreshes a watch whose version the backend that it should move to does not know. */
  refused(watch: WatchSession): void {
    // Plus 1, because an event that came in this very millisecond is part of the refused version.
    this.#add([{ watch, since: this.#parts.clock.now() + 1 }]);
  }

  /** Refreshes the watches of a resource on other backends, because this backend has just filled its cache. */
  warmed({ backend, resource }: Pick<CacheProgress, "backend" | "resource">): void {
    this.#begin(backend, (watch) => watch.resource === resource);
  }

  /** Refreshes the watches on other backends that `isMeant` selects: each must be proven complete up to now. */
  #begin(backend: string, isMeant: (watch: WatchSession) => boolean): void {
    const { clock, exchanges } = this.#parts;
    const since = clock.now();
    const found: BookmarkRefresh[] = [];
    const look = ({ watch, isEnded }: Exchange): void => {
      if (watch === undefined || isEnded || watch.attempt?.backend === backend) return;
      if (isMeant(watch)) found.push({ watch, since });
    };
    inSlices(clock, exchanges.live, look, () => this.#add(found));
  }

  #add(refreshes: Iterable<BookmarkRefresh>): void {
    const add = ({ watch, since }: BookmarkRefresh): void => {
      this.#old.set(watch, Math.max(since, this.#old.get(watch) ?? since));
      this.#nextSoon();
    };
    inSlices(this.#parts.clock, refreshes, add);
  }

  #nextSoon(): void {
    if (this.#isUnderWay || this.#old.size === 0) return;
    this.#isUnderWay = true;
    this.#parts.clock.after(watchLimits.bookmarkRefreshPauseMs, () => {
      this.#next(() => {
        this.#isUnderWay = false;
        this.#nextSoon();
      });
    });
  }

  /** Refreshes the next watch. Watches that need no refresh any more, or wait for a list, are skipped at once. */
  #next(done: () => void): void {
    const refresh = ([watch, since]: readonly [WatchSession, number]): unknown => {
      this.#old.delete(watch);
      return this.#refresh({ watch, since }) ? stop : undefined;
    };
    inSlices(this.#parts.clock, this.#old, refresh, done);
  }

  #refresh(refresh: BookmarkRefresh): boolean {
    const { watch, since } = refresh;
    const { attempt } = watch;
    if (attempt === undefined || !watch.mayHedge || !isOlderThan(watch, since, undefined)) return false;
    const version = this.#progress.versionFor(refresh, attempt.backend);
    if (version === undefined || !isOlderThan(watch, since, version)) return false;
    this.#parts.migrations.refresh(watch);
    this.#progress.refreshed(watch, attempt.backend);
    return true;
  }
}

/**
 * True if a bookmark is possible, and needed to prove that the watch is complete up to `at` (a clock reading).
 * `version`: etcd's version at that time; undefined while it is not known, "" if it cannot be known. If it is known, a
 * bookmark since then does not suffice, because a cache that etcd does not notify sends bookmarks of old versions.
 */
function isOlderThan(watch: WatchSession, at: number, version: string | undefined): boolean {
  const { lastEventAt, lastChangeAt } = watch.progress;
  if ((version === "" ? lastEventAt : lastChangeAt) >= at || !watch.mayBeRefreshed) return false;
  return version === undefined || version === "" || isBehind(watch, version);
}
