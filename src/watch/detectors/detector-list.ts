/**
 * All detectors that look for faults of watches at regular intervals. A new detector gets a file of its own in this
 * folder, and is created here. A detector of a backend's faults also reports evidence (health/evidence.ts).
 */
import type { Clock } from "../../base/clock.ts";
import type { Journal } from "../../events/journal.ts";
import type { Backends } from "../../health/backends.ts";
import type { ActiveRequests } from "../../proxy/request/active-requests.ts";
import type { PoolSet } from "../../upstream/pool/pool-set.ts";
import type { CacheTracker } from "../cache/cache-progress.ts";
import type { Migrations } from "../migration/migrations.ts";
import type { BookmarkRefresher } from "./bookmark-refresh.ts";
import { ForkedHistories } from "./forked-histories.ts";
import { HungWatchDetector } from "./hung-watch.ts";
import { LaggingCacheDetector } from "./lagging-cache.ts";
import { Sentinels } from "./sentinels.ts";
import { StalledCacheDetector } from "./stalled-cache.ts";
import { WatchDelayDetector } from "./watch-delay.ts";

export type PeriodicDetector = { start(): void; stop(): void };

type DetectorParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly backends: Backends;
  readonly pools: PoolSet;
  readonly caches: CacheTracker;
  readonly exchanges: ActiveRequests;
  readonly migrations: Migrations;
  readonly refresher: BookmarkRefresher;
  /** When another etcd history is accepted, what clients have seen of the old one counts no more. */
  readonly guard: () => { forgetSeen(): void };
};

/** What detectors compare between backends (see `PathOptions`). */
export type Comparisons = "all" | "watches" | "nothing";

export class WatchDetectors {
  readonly sentinels: Sentinels;
  readonly histories: ForkedHistories | undefined;
  readonly #all: readonly PeriodicDetector[];

  constructor(parts: DetectorParts, compares: Comparisons) {
    this.sentinels = new Sentinels(parts);
    this.histories = compares === "all" ? new ForkedHistories(parts) : undefined;
    this.#all = [
      ...(compares === "nothing" ? [] : [this.sentinels]),
      ...(this.histories === undefined ? [] : [this.histories]),
      new HungWatchDetector(parts.clock, parts.exchanges),
      new StalledCacheDetector(parts),
      new LaggingCacheDetector({
        ...parts,
        afterMs: (name) => parts.pools.poolOf(name)?.deadlines.suspectAfterMs,
      }),
      new WatchDelayDetector(parts),
    ];
  }

  start(): void {
    for (const detector of this.#all) detector.start();
  }

  stop(): void {
    for (const detector of this.#all) detector.stop();
  }
}
