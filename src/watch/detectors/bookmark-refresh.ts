/**
 * Keeps the resume versions of watches new enough for a backend that has just come back. The caches of such a backend
 * begin at its start (watch.md §5.4), so a watch on another backend could not move there if its last event or bookmark
 * is older. First, the proxy makes the cache of the watch's own backend follow etcd (progress-requests.ts). Then it
 * opens a second stream of the watch on that same backend, with a timeout so short that a bookmark comes at once
 * (§6.1). The two streams are merged as usual, and the bookmark makes the watch's resume version newer.
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
  /** Watches that may be too old for other backends. Value: clock reading up to which each must be proven complete. */
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

  /** Refreshes the watches on other backends, because this backend became ready and its caches begin now. */
  returned(backend: string): void {
    this.#begin(backend, () => true);
  }

  /** Called after a 410 to versions up to `refused`. Refreshes the watches on other backends that are no newer. */
  forgotten({ backend, resource, refused }: Pick<CacheProgress, "backend" | "resource" | "refused">): void {
    const isOld = ({ resource: of, progress: { resumeVersion = "" } }: WatchSession): boolean =>
      of === resource && compareVersions(resumeVersion, refused) <= 0;
    this.#begin(backend, isOld);
  }

  /** Refreshes a watch whose resume version is too old for the backend that the watch should move to. */
  refused(watch: WatchSession): void {
    // Plus 1 ms, because the refused version may be that of an event that came in this very millisecond.
    this.#add([{ watch, since: this.#parts.clock.now() + 1 }]);
  }

  /** Refreshes the watches of a resource on other backends, because this backend has just filled its cache. */
  warmed({ backend, resource }: Pick<CacheProgress, "backend" | "resource">): void {
    this.#begin(backend, (watch) => watch.resource === resource);
  }

  /** Refreshes the watches on other backends that `isMeant` selects, so that each is proven complete up to now. */
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

  /** Refreshes the next watch. Skips watches that need no refresh any more, or that wait for a list. */
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
 * True if a bookmark is possible, and is needed to prove that the watch has all events up to the clock reading `at`.
 * `version`: etcd's version at that time; undefined while it is not known, "" if it cannot be known. A known version
 * must be reached. A later bookmark alone is no proof, because a cache that etcd does not notify sends old versions.
 */
function isOlderThan(watch: WatchSession, at: number, version: string | undefined): boolean {
  const { lastEventAt, lastChangeAt } = watch.progress;
  if ((version === "" ? lastEventAt : lastChangeAt) >= at || !watch.mayBeRefreshed) return false;
  return version === undefined || version === "" || isBehind(watch, version);
}
