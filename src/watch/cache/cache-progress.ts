/**
 * Tracks the newest resourceVersion that each backend's watch cache has delivered, for each resource and each scope. A
 * scope is one resource in one namespace, or in all namespaces (`WatchContext.scope`). A cache is suspected if another
 * backend has delivered an event that this cache has not. The cache certainly lags if one of its watches should have
 * delivered the event by now (`wouldShow`).
 */
import { limits } from "../../base/limits.ts";
import { compareVersions, versionBefore } from "../../kube/resource-version.ts";
import type { WatchEvent } from "../codec/event.ts";
import { watchLimits } from "../limits.ts";
import { WriteDelays, type WriteProgress } from "./write-delays.ts";

const none: readonly string[] = [];

/** A scope (`WatchContext.scope`) that covers all namespaces ends with this character. */
const wholeScopeEnd = " ";

/** Watches avoid a stalled cache for `spellMs`, until the clock reading `until`. Each new stall doubles `spellMs`. */
type Stall = {
  /** Version of the event that another backend has delivered and this cache has not. */
  readonly version: string;
  readonly since: number;
  readonly until: number;
  readonly spellMs: number;
};

/** The newest versions that one backend's cache of one resource or scope has delivered to watches. */
export class CacheProgress {
  readonly backend: string;
  readonly resource: string;
  /** Newest version of an event or a bookmark; "": none yet. */
  version = "";
  /** Newest version of an event that is no bookmark; "": none yet. */
  event = "";
  watches = 0;
  /** Number of open watches of the whole resource: in every namespace, without a selector. */
  wholeWatches = 0;
  /** Clock reading of the latest periodic bookmark; -1: none yet. */
  bookmarkAt = -1;
  watchedSince = 0;
  /** Clock reading since which the cache has delivered no newer version. */
  stillSince = 0;
  stall: Stall | undefined;
  /** Newest version from which the backend has refused a watch with 410 (too old); "": none. */
  refused = "";
  /** Measures the delay of writes; defined only for a scope that covers the whole resource. */
  readonly writes: WriteProgress | undefined;
  #hasForgotten = false;

  constructor(backend: string, resource: string, writes?: WriteProgress) {
    this.backend = backend;
    this.resource = resource;
    this.writes = writes;
  }

  /** Called when the backend has accepted a watch. `from`: the version from which the watch was requested. */
  join(isWhole: boolean, now: number, from = ""): void {
    if (this.watches === 0) {
      this.watchedSince = now;
      this.stillSince = now;
      this.writes?.begin(now);
    }
    this.writes?.startFrom(from);
    this.watches += 1;
    if (isWhole) this.wholeWatches += 1;
  }

  leave(isWhole: boolean): void {
    this.watches -= 1;
    if (isWhole) this.wholeWatches -= 1;
    if (this.watches === 0) this.writes?.stop();
  }

  showEvent(version: string, now: number): void {
    const ahead = compareVersions(version, this.version);
    if (ahead === 0) this.event = this.version;
    else if (ahead < 0) this.event = compareVersions(version, this.event) > 0 ? version : this.event;
    else {
      this.event = version;
      this.#reach(version, now);
    }
  }

  /**
   * Records a bookmark. The bookmark that ends the initial events is not a periodic one, so it does not set
   * `bookmarkAt`.
   */
  showBookmark({ version, endsInitialEvents }: WatchEvent, now: number): void {
    if (!endsInitialEvents) this.bookmarkAt = now;
    if (compareVersions(version, this.version) > 0) this.#reach(version, now);
  }

  /**
   * Records that a watch from `version` got 410. `oldest`: the cache's oldest version; "" if the 410 does not state it.
   */
  refuse(version: string, oldest: string): void {
    // A cache that refuses `version` has only newer versions. If `oldest` is not newer, the 410 contradicts itself, and
    // `oldest` is ignored.
    const isSaid = compareVersions(oldest, version) > 0;
    const newest = isSaid ? versionBefore(oldest) : version;
    if (compareVersions(newest, this.refused) <= 0) return;
    this.refused = newest;
    this.#hasForgotten = true;
  }

  /**
   * True if, since the previous call of this method, the backend has answered 410 to a version that its cache had not
   * refused before.
   */
  takeForgotten(): boolean {
    const hasForgotten = this.#hasForgotten;
    this.#hasForgotten = false;
    return hasForgotten;
  }

  /** Returns the ms since the cache was found stalled; -1 if it is not stalled. */
  stalledMs(now: number): number {
    return this.stall !== undefined && this.isStalled(now) ? now - this.stall.since : -1;
  }

  isStalled(now: number): boolean {
    return this.stall !== undefined && now < this.stall.until;
  }

  #reach(version: string, now: number): void {
    this.version = version;
    this.stillSince = now;
    this.writes?.reached(version, now);
  }
}

/** The newest version that any backend had delivered at the clock reading `at`. Every cache should reach it soon. */
export type Mark = { readonly version: string; readonly at: number };

/** A cache that has lacked another backend's event for longer than a threshold. */
export type LagSuspicion = {
  readonly cache: CacheProgress;
  /** Version of the oldest missing event. */
  readonly version: string;
  readonly behindMs: number;
  /** True if the cache certainly lags: long after the missing event, it has sent a bookmark with an older version. */
  readonly isProven: boolean;
  /** True if some backend sends bookmarks for this resource. Resources without a watch cache have none. */
  readonly hasBookmarks: boolean;
  /** All marks (versions that every cache should reach) that the cache has not reached, oldest first. */
  readonly missing: readonly Mark[];
};

type Threshold = {
  /** Returns for how many ms the backend's cache must have lacked an event before the cache is suspected. */
  readonly afterMs: (backend: string) => number;
  /** True if a cache is suspected only when it has also delivered nothing new for `afterMs`. */
  readonly isStill: boolean;
};

const stalling: Threshold = { afterMs: () => limits.behindMs, isStill: true };

/**
 * Compares the caches of one resource, or of one scope (`WatchContext.scope`), at all backends. A *mark* is a version
 * that some cache has delivered and that all of them should therefore reach.
 */
class Peers {
  readonly caches = new Map<string, CacheProgress>();
  readonly #markIntervalMs: number;
  #seenOfForgotten = "";
  #marks: Mark[] = [];

  constructor(markIntervalMs: number) {
    this.#markIntervalMs = markIntervalMs;
  }

  get isWatched(): boolean {
    return this.caches.values().some(({ watches, stall }) => watches > 0 || stall !== undefined);
  }

  get seen(): string {
    return newestOf(this.caches.values(), ({ version }) => version, this.#seenOfForgotten);
  }

  forget(backend: string): void {
    this.#seenOfForgotten = this.seen;
    if (this.caches.delete(backend)) this.#marks = [];
  }

  suspicions(now: number, { afterMs, isStill }: Threshold): LagSuspicion[] {
    this.#mark(now);
    const suspicions: LagSuspicion[] = [];
    for (const cache of this.caches.values()) {
      const first = cache.watches === 0 ? -1 : this.#marks.findIndex((mark) => lacks(cache, mark));
      const mark = this.#marks[first];
      if (mark === undefined) continue;
      const since = Math.max(mark.at, isStill ? cache.stillSince : cache.watchedSince);
      const behindMs = now - since;
      if (behindMs < afterMs(cache.backend)) continue;
      suspicions.push({
        cache,
        version: mark.version,
        behindMs,
        isProven: cache.bookmarkAt - since >= limits.behindMs,
        hasBookmarks: this.caches.values().some(({ bookmarkAt }) => bookmarkAt >= 0),
        missing: this.#marks.slice(first),
      });
    }
    return suspicions;
  }

  /** Moves the marks' times `ms` later, because the proxy read no events while its event loop was stalled. */
  discountStall(ms: number): void {
    this.#marks = this.#marks.map(({ version, at }) => ({ version, at: at + ms }));
  }

  /**
   * Adds the newest event's version as a mark, if the next mark is due, and drops old marks. A bookmark's version does
   * not become a mark, because it may come from a change of another resource.
   */
  #mark(now: number): void {
    const latest = newestOf(this.caches.values(), ({ event }) => event);
    const slowest = this.#slowestWatched;
    const isLacked = (mark: Mark): boolean => slowest !== undefined && lacks(slowest, mark);
    const last = this.#marks.at(-1);
    const isDue = last === undefined || now - last.at >= this.#markIntervalMs || !isLacked(last);
    if (isDue && compareVersions(latest, last?.version ?? "") > 0)
      this.#marks.push({ version: latest, at: now });
    // Drops the marks that all caches have reached. The newest mark stays, so that the next call does not add it again.
    const shown = this.#marks.findIndex(isLacked);
    const kept = shown === -1 ? 1 : Math.min(this.#marks.length - shown, watchLimits.cacheMarks);
    if (this.#marks.length > kept) this.#marks = this.#marks.slice(-kept);
  }

  get #slowestWatched(): CacheProgress | undefined {
    let slowest: CacheProgress | undefined;
    for (const cache of this.caches.values()) {
      const isSlower = slowest === undefined || compareVersions(cache.version, slowest.version) < 0;
      if (isSlower && cache.watches > 0) slowest = cache;
    }
    return slowest;
  }
}

function newestOf(caches: Iterable<CacheProgress>, of: (cache: CacheProgress) => string, least = ""): string {
  let most = least;
  for (const cache of caches) if (compareVersions(of(cache), most) > 0) most = of(cache);
  return most;
}

function lacks({ version }: CacheProgress, mark: Mark): boolean {
  return compareVersions(mark.version, version) > 0;
}

/**
 * Finds caches that lack another backend's event. A resource's cache is *stalled* if it has lacked the event, and has
 * delivered nothing new, for 8 s. A scope's cache *lags* once it has lacked the event for as long as a PING may stay
 * unanswered.
 */
export class CacheTracker {
  readonly writeDelays = new WriteDelays();
  readonly #resources = new Map<string, Peers>();
  readonly #scopes = new Map<string, Peers>();
  readonly #stalled = new Set<CacheProgress>();

  /**
   * Returns one cache's progress. If `comparedResources` other resources are tracked already, the proxy does not
   * compare this progress with that of other backends.
   */
  of(backend: string, resource: string): CacheProgress {
    return progressIn(this.#resources, backend, resource, { markIntervalMs: 0 });
  }

  ofScope(backend: string, scope: string): CacheProgress {
    return progressIn(this.#scopes, backend, scope, {
      markIntervalMs: watchLimits.lagMarkMs,
      // Writes are measured only by watches of the whole resource, because only these deliver every write.
      measure: scope.endsWith(wholeScopeEnd)
        ? () => this.writeDelays.of(backend, scope.slice(0, -wholeScopeEnd.length))
        : undefined,
    });
  }

  /** Returns the caches that have lacked an event, and have delivered nothing new, for `limits.behindMs`. */
  stalling(now: number): LagSuspicion[] {
    return [...this.#resources.values()].flatMap((peers) => peers.suspicions(now, stalling));
  }

  /** Returns the caches of all scopes (`WatchContext.scope`) that have lacked an event for `afterMs`. */
  lagging(now: number, afterMs: (backend: string) => number): LagSuspicion[] {
    const threshold = { afterMs, isStill: false };
    const lagging: LagSuspicion[] = [];
    for (const peers of this.#scopes.values())
      if (peers.caches.size > 1) lagging.push(...peers.suspicions(now, threshold));
    return lagging;
  }

  discountStall(ms: number): void {
    for (const peers of this.#scopes.values()) peers.discountStall(ms);
  }

  /** True if the backend has accepted a watch of this resource since the backend was added, or was last dead. */
  knows(backend: string, resource: string): boolean {
    return this.#resources.get(resource)?.caches.has(backend) === true;
  }

  /** Returns the backends that have refused this version or a newer one with 410 (too old, watch.md §5.4). */
  refusing(resource: string, version: string): readonly string[] {
    const caches = this.#resources.get(resource)?.caches.values().toArray() ?? [];
    const refusing = caches.filter(({ refused }) => compareVersions(version, refused) <= 0);
    return refusing.length === 0 ? none : refusing.map(({ backend }) => backend);
  }

  /**
   * Returns the caches that, since the previous call, have answered 410 to a version that they had not refused before.
   */
  takeForgetful(): CacheProgress[] {
    const all = this.#resources.values().flatMap(({ caches }) => caches.values());
    return all.filter((cache) => cache.takeForgotten()).toArray();
  }

  get resources(): number {
    return this.#resources.size;
  }

  /** Returns the caches that have watches. */
  get watched(): readonly CacheProgress[] {
    const all = this.#resources.values().flatMap(({ caches }) => caches.values());
    return all.filter(({ watches }) => watches > 0).toArray();
  }

  /** Drops the caches of a dead or removed backend, because a backend that comes back has new caches. */
  forget(backend: string): void {
    for (const all of [this.#resources, this.#scopes])
      for (const [name, peers] of all) {
        peers.forget(backend);
        if (peers.caches.size === 0 && peers.seen === "") all.delete(name);
      }
    for (const cache of this.#stalled) if (cache.backend === backend) this.#stalled.delete(cache);
    this.writeDelays.forget(backend);
  }

  /** Returns the newest version of the resource that clients may have received; "": none is known. */
  seen(resource: string): string {
    return this.#resources.get(resource)?.seen ?? "";
  }

  /**
   * Drops the versions of all resources, because no backend has the etcd history that clients have seen
   * (forked-histories.ts).
   */
  forgetSeen(): void {
    this.#resources.clear();
    this.#stalled.clear();
  }

  reconcile(names: readonly string[]): void {
    const all = [...this.#resources.values(), ...this.#scopes.values()].flatMap(({ caches }) => [
      ...caches.keys(),
    ]);
    for (const backend of new Set(all)) if (!names.includes(backend)) this.forget(backend);
    this.writeDelays.reconcile(names);
  }

  markStalled({ cache, version }: LagSuspicion, now: number): void {
    const before = cache.stall;
    const spellMs =
      before === undefined
        ? watchLimits.stallSpellMs
        : Math.min(watchLimits.stallSpellMostMs, 2 * before.spellMs);
    cache.stall = { version, since: before?.since ?? now, until: now + spellMs, spellMs };
    this.#stalled.add(cache);
  }

  /** Ends the stall of each cache that has now delivered the missing event, and returns these caches. */
  takeRecovered(): CacheProgress[] {
    const recovered = [...this.#stalled].filter(
      ({ stall, version }) => stall === undefined || compareVersions(version, stall.version) >= 0,
    );
    for (const cache of recovered) {
      this.#stalled.delete(cache);
      cache.stall = undefined;
    }
    return recovered;
  }

  get isClear(): boolean {
    return this.#stalled.size === 0;
  }

  stalledWith(resource: string, now: number): readonly string[] {
    return this.#stalledNow(now).flatMap((cache) => (cache.resource === resource ? [cache.backend] : []));
  }

  stalledAt(backend: string, now: number): readonly string[] {
    return this.#stalledNow(now).flatMap((cache) => (cache.backend === backend ? [cache.resource] : []));
  }

  stalls(now: number): number {
    return this.#stalledNow(now).length;
  }

  #stalledNow(now: number): CacheProgress[] {
    return [...this.#stalled].filter((cache) => cache.isStalled(now));
  }
}

type PeersSettings = {
  readonly markIntervalMs: number;
  readonly measure?: (() => WriteProgress | undefined) | undefined;
};

function progressIn(
  all: Map<string, Peers>,
  backend: string,
  name: string,
  { markIntervalMs, measure }: PeersSettings,
): CacheProgress {
  const known = all.get(name);
  const progress = known?.caches.get(backend) ?? new CacheProgress(backend, name, measure?.());
  if (known === undefined && !makeRoom(all)) return progress;
  const peers = known ?? new Peers(markIntervalMs);
  all.set(name, peers);
  peers.caches.set(backend, progress);
  return progress;
}

/** If `all` is full, deletes an entry without open watches. Returns false if there is none. */
function makeRoom(all: Map<string, Peers>): boolean {
  if (all.size < watchLimits.comparedResources) return true;
  for (const [name, peers] of all) if (!peers.isWatched) return all.delete(name);
  return false;
}

/**
 * True if etcd's versions have gone back, for example because etcd was restored from a backup: the cache delivers new
 * events, but all are older than `from`, the version that the stream was requested from. The apiserver accepts such a
 * watch, but sends it nothing (k/k 107457, watch.md §11 row 13). False if the cache delivers no new events, because it
 * may only be stalled.
 */
export function isRewound(
  { from, since }: Pick<Coverage, "from" | "since">,
  { version, stillSince }: CacheProgress,
  now: number,
): boolean {
  const isMoving = stillSince > since;
  return isMoving && now - since >= watchLimits.caughtUpMs && compareVersions(version, from) < 0;
}

/** The facts that decide which events of its backend's cache an upstream watch stream must deliver. */
export type Coverage = {
  /** Version that the stream was requested from; "" if the request named none. */
  readonly from: string;
  /** Clock reading at which the backend accepted the stream. */
  readonly since: number;
  /** True if the stream covers the whole resource, in every namespace. */
  readonly isWhole: boolean;
  readonly hasBookmarks: boolean;
};

/**
 * True if the silence of this stream proves that its cache lacks one of the missing events. A stream of the whole
 * resource would have delivered the event within `wholeMs`. Any other stream would have received a newer bookmark
 * within 62.3 s (watch.md §6.1), even if the watch has moved in the meantime (§6.4).
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
    // A stream that was opened at about the time of the event may have delivered the event in its initial state. The
    // silence of such a stream since then proves nothing.
    const isEarlier = since + watchLimits.sightMs <= at;
    return isEarlier && compareVersions(from, version) < 0 && now - Math.max(at, stillSince) >= withinMs;
  });
}
