/**
 * Gets new bookmarks for watches, so that they can move to a backend that has just come back. The watch caches of such
 * a backend begin at its start (watch.md §5.4), so a watch whose last event or bookmark is older could not continue
 * there. The proxy therefore makes the cache of the watch's present backend follow etcd (progress-requests.ts). Then it
 * opens a second stream of the watch on the present backend, with a timeout so short that the apiserver sends a
 * bookmark at once (§6.1).
 */
import type { Clock } from "../../base/clock.ts";
import { inSlices, stop } from "../../base/slices.ts";
import type { Journal } from "../../events/journal.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import type { ActiveRequests } from "../../proxy/request/active-requests.ts";
import type { Exchange } from "../../proxy/request/exchange.ts";
import type { PoolSet } from "../../upstream/pool/pool-set.ts";
import type { CacheProgress } from "../cache/cache-progress.ts";
import { watchLimits } from "../limits.ts";
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
  /** Watches that need a new bookmark. Value: clock reading up to which the bookmark must cover all events. */
  readonly #old = new Map<WatchSession, number>();
  /**
   * Watches for which no second stream could be opened yet. The proxy tries again later. Value: clock reading up to
   * which the bookmark must cover all events.
   */
  readonly #postponed = new Map<WatchSession, number>();
  #isUnderWay = false;

  constructor(parts: BookmarkRefresherParts) {
    this.#parts = parts;
    this.#progress = new ProgressRequests(parts, (waited) => this.#add(waited));
  }

  /** Number of lists sent to make caches follow etcd, by result. */
  get progressRequests(): ProgressCounts {
    return this.#progress.counts;
  }

  get postponed(): number {
    return this.#postponed.size;
  }

  /**
   * Called when `backend` has become ready. Its caches have no events from before now, so watches on other backends
   * need new bookmarks before they can move to it.
   */
  returned(backend: string): void {
    this.#refreshOnOthers(backend, () => true);
  }

  /**
   * Called when `backend` has answered 410 (version too old) to a watch. If `backend` would also refuse the resume
   * version of a watch on another backend, gets a new bookmark for that watch.
   */
  forgotten({ backend, resource, refused }: Pick<CacheProgress, "backend" | "resource" | "refused">): void {
    const isOld = ({ resource: of, progress: { resumeVersion = "" } }: WatchSession): boolean =>
      of === resource && compareVersions(resumeVersion, refused) <= 0;
    this.#refreshOnOthers(backend, isOld);
  }

  /** Gets a bookmark for a watch whose resume version is too old for the backend that it should move to. */
  refused(watch: WatchSession): void {
    // Any event that arrives at `since` or later counts as a refresh. The event that gave the watch its old version
    // must not count, and may have arrived in this very millisecond. So `since` is 1 ms later.
    this.#add([{ watch, since: this.#parts.clock.now() + 1 }]);
  }

  /**
   * Called when `backend` has just initialised its cache of a resource. The cache has no older events, so watches on
   * other backends need new bookmarks before they can move to `backend`.
   */
  warmed({ backend, resource }: Pick<CacheProgress, "backend" | "resource">): void {
    this.#refreshOnOthers(backend, (watch) => watch.resource === resource);
  }

  #refreshOnOthers(backend: string, isSelected: (watch: WatchSession) => boolean): void {
    const { clock, exchanges } = this.#parts;
    const since = clock.now();
    const found: BookmarkRefresh[] = [];
    const look = ({ watch, isEnded }: Exchange): void => {
      if (watch === undefined || isEnded || watch.attempt?.backend === backend) return;
      if (isSelected(watch)) found.push({ watch, since });
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

  /** Refreshes one watch. Skips watches that no longer need a bookmark, or that wait for a list's response. */
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
    if (!isOlderThan(watch, since, undefined)) return false;
    if (attempt === undefined || !watch.mayHedge) return this.#postpone(refresh);
    const version = this.#progress.versionFor(refresh, attempt.backend);
    if (version === undefined || !isOlderThan(watch, since, version)) return false;
    if (!this.#parts.migrations.refresh(watch)) return this.#postpone(refresh);
    this.#progress.refreshed(watch, attempt.backend);
    return true;
  }

  /**
   * Tries again later, because the watch is moving or has a second stream now. The bookmark will come from the backend
   * that the watch has by then. Gives up after `caughtUpMs`, because every backend has then sent a bookmark by itself.
   */
  #postpone({ watch, since }: BookmarkRefresh): false {
    const { clock } = this.#parts;
    const isOver = watch.state === "ending" || watch.state === "ended";
    if (isOver || clock.now() - since >= watchLimits.caughtUpMs) return false;
    if (this.#postponed.size === 0) clock.after(watchLimits.bookmarkRefreshAgainMs, () => this.#again());
    this.#postponed.set(watch, since);
    return false;
  }

  #again(): void {
    const refreshes = Array.from(this.#postponed, ([watch, since]) => ({ watch, since }));
    this.#postponed.clear();
    this.#add(refreshes);
  }
}

/**
 * True if the watch needs a bookmark to cover all events up to the clock reading `at`, and can get one. `version`:
 * etcd's version at `at`; undefined: it is not known yet; "": it cannot be found. A bookmark that came after `at` but
 * is older than `version` does not suffice, because a cache that etcd does not notify sends bookmarks with old
 * versions.
 */
function isOlderThan(watch: WatchSession, at: number, version: string | undefined): boolean {
  const { lastEventAt, lastChangeAt } = watch.progress;
  if ((version === "" ? lastEventAt : lastChangeAt) >= at || !watch.mayBeRefreshed) return false;
  return version === undefined || version === "" || isBehind(watch, version);
}
