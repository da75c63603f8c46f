/**
 * Opens a second upstream stream on another backend for each watch of a lagging cache. A cache lags if it has lacked
 * another backend's event for as long as a PING may stay unanswered. Its backend may be cut off from etcd, although the
 * backend still answers PINGs and, for two seconds, /readyz. For each event, the copy that arrives first is forwarded.
 * The second stream is dropped when the cache has caught up. If the cache is found stalled (stalled-cache.ts), the
 * watches move to the second stream. The backend still gets requests, so that a false alarm costs little (watch.md
 * §5.6).
 */
import type { Clock } from "../../base/clock.ts";
import { Interval } from "../../base/interval.ts";
import { limits } from "../../base/limits.ts";
import { inSlices, stop } from "../../base/slices.ts";
import { type CacheTracker, type LagSuspicion, wouldShow } from "../cache/cache-progress.ts";
import { watchLimits } from "../limits.ts";
import type { Migrations } from "../migration/migrations.ts";
import { resourceOf } from "../session/watch-context.ts";
import type { WatchSession } from "../session/watch-session.ts";
import type { WatchStream } from "../session/watch-stream.ts";

type LaggingCacheParts = {
  readonly clock: Clock;
  readonly caches: CacheTracker;
  readonly migrations: Migrations;
  /** Returns the ms of silence after which the backend becomes suspect; undefined for a removed backend. */
  readonly afterMs: (backend: string) => number | undefined;
};

type Cache = { readonly backend: string; readonly resource: string };
type Hedged = Cache & { readonly since: number };

export class LaggingCacheDetector extends Interval {
  readonly #parts: LaggingCacheParts;
  readonly #hedged = new Map<string, Hedged>();
  readonly #ignoredUntil = new Map<string, number>();
  readonly #walksUnderWay = new Set<string>();

  constructor(parts: LaggingCacheParts) {
    super(parts.clock, watchLimits.lagLookMs, (lateMs) => this.#look(lateMs));
    this.#parts = parts;
  }

  #look(lateMs: number): void {
    const { clock, caches } = this.#parts;
    const now = clock.now();
    if (lateMs > limits.stallMs) caches.discountStall(lateMs);
    for (const [name, until] of this.#ignoredUntil) if (until <= now) this.#ignoredUntil.delete(name);
    const suspicions = caches.lagging(now, (backend) => this.#afterMs(backend));
    if (suspicions.length > 0 || this.#hedged.size > 0) this.#act(suspicions);
  }

  #act(suspicions: readonly LagSuspicion[]): void {
    const lagging = Map.groupBy(suspicions, (suspicion) => nameOf(cacheOf(suspicion)));
    for (const [name, hedged] of this.#hedged) if (!lagging.has(name)) this.#clear(name, hedged);
    for (const of of lagging.values()) this.#hedge(of, suspicions);
  }

  #afterMs(backend: string): number {
    const { migrations, afterMs } = this.#parts;
    return migrations.targets.isDoubtful(backend)
      ? Number.POSITIVE_INFINITY
      : (afterMs(backend) ?? Number.POSITIVE_INFINITY);
  }

  /**
   * Opens second streams for the watches of one lagging cache. `suspicions`: the suspicions about this cache. `all`:
   * the suspicions about all caches. A second stream does not go to a backend whose own cache of the resource lags as
   * well.
   */
  #hedge(suspicions: readonly LagSuspicion[], all: readonly LagSuspicion[]): void {
    const [first] = suspicions;
    if (first === undefined) return;
    const { clock, migrations } = this.#parts;
    const cache = cacheOf(first);
    const name = nameOf(cache);
    if (this.#walksUnderWay.has(name) || this.#ignoredUntil.has(name)) return;
    const others = all.map(cacheOf);
    const names = others.filter(({ resource }) => resource === cache.resource).map(({ backend }) => backend);
    const hedge = (): void =>
      this.#walk(cache, (watch) => {
        if (watch.attempt?.backend === cache.backend) migrations.hedgeElsewhere(watch, names);
      });
    if (this.#hedged.has(name)) return hedge();
    // Watches are hedged only if at least one of them should have delivered the missing event by now.
    let isShown = false;
    const ask = (watch: WatchSession): unknown => {
      isShown = suspicions.some((one) =>
        isLate(watch, one, { now: clock.now(), afterMs: this.#afterMs(one.cache.backend) }),
      );
      return isShown ? stop : undefined;
    };
    this.#walk(cache, ask, () => {
      if (!isShown) return;
      this.#hedged.set(name, { ...cache, since: clock.now() });
      hedge();
    });
  }

  /**
   * Calls `visit` for the watches of the cache's resource on all backends. There is at most one such walk for each
   * cache at a time.
   */
  #walk(cache: Cache, visit: (watch: WatchSession) => unknown, done?: () => void): void {
    const { clock, migrations } = this.#parts;
    const name = nameOf(cache);
    this.#walksUnderWay.add(name);
    inSlices(clock, migrations.watches.of(cache.resource), visit, () => {
      this.#walksUnderWay.delete(name);
      done?.();
    });
  }

  #clear(name: string, hedged: Hedged): void {
    const { backend, since } = hedged;
    const { clock, migrations } = this.#parts;
    const now = clock.now();
    this.#hedged.delete(name);
    // If the backend itself has become suspect, its watches keep their second streams. They keep them until the
    // backend's connections answer PINGs again or are lost.
    if (migrations.targets.isDoubtful(backend)) return;
    if (now - since < watchLimits.lagMomentMs) this.#ignoredUntil.set(name, now + watchLimits.lagPauseMs);
    inSlices(clock, migrations.watches.of(hedged.resource), ({ attempt }) => {
      if (attempt?.backend === backend && !attempt.isSuspect) attempt.cleared();
    });
  }
}

function cacheOf({ cache: { backend, resource: scope } }: LagSuspicion): Cache {
  return { backend, resource: resourceOf(scope) };
}

function nameOf({ backend, resource }: Cache): string {
  return `${backend} ${resource}`;
}

/** True if the watch has its initial state, but has not delivered the missing event within `afterMs`. */
function isLate(
  watch: WatchSession,
  suspicion: LagSuspicion,
  { now, afterMs }: { readonly now: number; readonly afterMs: number },
): boolean {
  const stream = liveStreamOf(watch, ({ scopeCache }) => scopeCache === suspicion.cache);
  if (stream === undefined) return false;
  const { reading, acceptedAt: since } = stream;
  return wouldShow(
    { from: reading.from, since, isWhole: true, hasBookmarks: false },
    suspicion,
    now,
    afterMs,
  );
}

/**
 * Returns the first of `watch.compared` (the streams that show how far their caches have come) for which `is` returns
 * true. Returns undefined if there is none, if the client does not have the complete initial state yet, or if the
 * client reads too slowly.
 */
export function liveStreamOf(
  watch: WatchSession,
  is: (stream: WatchStream) => boolean,
): WatchStream | undefined {
  const { phase, start } = watch.progress;
  const hasState = phase === "live" || (phase === "opening" && start === "exact");
  return hasState && !watch.isBlocked ? watch.compared.find(is) : undefined;
}
