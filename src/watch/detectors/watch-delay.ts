/**
 * Finds backends whose watches deliver writes late (write-delays.ts): the backend answers and its watch caches advance,
 * but clients see a state that is seconds old. If a cache does not advance at all, stalled-cache.ts also finds it.
 */
import type { Clock } from "../../base/clock.ts";
import { Interval } from "../../base/interval.ts";
import { limits } from "../../base/limits.ts";
import type { Journal } from "../../events/journal.ts";
import type { Backends } from "../../health/backends.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import type { CacheTracker } from "../cache/cache-progress.ts";
import type { WriteProgress } from "../cache/write-delays.ts";
import { watchLimits } from "../limits.ts";
import type { Migrations } from "../migration/migrations.ts";
import { liveStreamOf } from "./lagging-cache.ts";

type WatchDelayParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly backends: Pick<Backends, "views">;
  readonly caches: CacheTracker;
  readonly migrations: Migrations;
};

type LateBackend = { looks: number; isLate: boolean; reportedAt: number };

export class WatchDelayDetector extends Interval {
  readonly #parts: WatchDelayParts;
  /** The backends that the latest check found late. */
  readonly #late = new Map<string, LateBackend>();

  constructor(parts: WatchDelayParts) {
    super(parts.clock, watchLimits.delayLookMs, (lateMs) => this.#look(lateMs));
    this.#parts = parts;
  }

  #look(lateMs: number): void {
    const { clock, backends, caches } = this.#parts;
    const now = clock.now();
    // A stall of the event loop does not count, because the proxy read neither responses nor events during the stall.
    if (lateMs > limits.stallMs) for (const writes of caches.writeDelays.all) writes.discountStall(lateMs);
    const ready = backends.views.filter(({ state }) => state === "ready").map(({ name }) => name);
    for (const name of this.#late.keys()) if (!ready.includes(name)) this.#late.delete(name);
    for (const backend of ready) this.#judge(backend, now);
  }

  #judge(backend: string, now: number): void {
    const late = this.#late.get(backend) ?? { looks: 0, isLate: false, reportedAt: Number.NEGATIVE_INFINITY };
    const limitMs = late.isLate ? watchLimits.stillLateMs : watchLimits.lateMs;
    const missing = this.#missingAt(backend, limitMs, now);
    if (missing.length === 0) {
      this.#late.delete(backend);
      return;
    }
    late.looks += 1;
    late.isLate ||= late.looks >= watchLimits.lateLooks;
    this.#late.set(backend, late);
    if (!late.isLate || now - late.reportedAt < watchLimits.lateReportMs) return;
    late.reportedAt = now;
    this.#report(missing, limitMs, now);
  }

  /**
   * For each resource with a write that the backend has not delivered for at least `limitMs`, returns the backend's
   * progress.
   */
  #missingAt(backend: string, limitMs: number, now: number): readonly WriteProgress[] {
    const missing: WriteProgress[] = [];
    for (const { all } of this.#parts.caches.writeDelays.all)
      for (const progress of all)
        if (progress.backend === backend && progress.lagMs(now) >= limitMs && this.#isProven(progress, now))
          missing.push(progress);
    return missing;
  }

  /** True if an open watch should have delivered the missing write, and stalled-cache.ts has not reported the cache. */
  #isProven(progress: WriteProgress, now: number): boolean {
    const { caches, migrations } = this.#parts;
    const { backend, writes, next } = progress;
    const mark = writes.markAt(next);
    if (mark === undefined || caches.stalledWith(writes.resource, now).includes(backend)) return false;
    const watches = migrations.watches.wholeOf(writes.resource).values().take(watchLimits.delayTries);
    return watches.some((watch) => {
      const stream = liveStreamOf(watch, ({ scopeCache }) => scopeCache?.writes === progress);
      return (
        stream !== undefined &&
        stream.acceptedAt + watchLimits.sightMs <= mark.at &&
        compareVersions(stream.reading.from, mark.version) < 0
      );
    });
  }

  #report(missing: readonly WriteProgress[], limitMs: number, now: number): void {
    const delayOf = (progress: WriteProgress): number =>
      Math.max(progress.lagMs(now), progress.recentMs(now));
    const [worst] = missing.toSorted((a, b) => delayOf(b) - delayOf(a));
    if (worst === undefined) return;
    const { backend, writes } = worst;
    const others = [...writes.all].filter((one) => one !== worst && one.isWatched).map(delayOf);
    this.#parts.journal.write({
      kind: "watch.delayed",
      backend,
      resource: writes.resource,
      delayMs: Math.round(delayOf(worst)),
      limitMs,
      othersMs: others.length === 0 ? -1 : Math.round(Math.max(...others)),
      resources: missing.length,
    });
  }
}
