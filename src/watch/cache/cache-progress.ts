/**
 * Tracks the newest version that the watch cache of each backend has delivered, for each resource and each scope
 * (`WatchContext.scope`). The versions come from the events and bookmarks of watches (watch.md §4). Versions are
 * compared within one resource only (§6.3). If a cache lacks an event that another backend has delivered, the cache is
 * suspected. The lack alone proves nothing; a watch that should have delivered the event is the proof (`wouldShow`).
 */
import { limits } from "../../base/limits.ts";
import { compareVersions, versionBefore } from "../../kube/resource-version.ts";
import type { WatchEvent } from "../codec/event.ts";
import { watchLimits } from "./limits.ts";

const none: readonly string[] = [];

/** A stall of a cache, which watches avoid until the clock reading `until`. Each further stall lasts twice as long. */
type Stall = {
  /** Version of an event that other backends had delivered and this backend had not. */
  readonly version: string;
  readonly since: number;
  readonly until: number;
  readonly spellMs: number;
};

/** How far one backend's cache of a resource or scope has come, according to its watches. Times are clock readings. */
export class CacheProgress {
  readonly backend: string;
  readonly resource: string;
  /** Newest version that the cache has delivered, and newest version of an event (not a bookmark); "": none yet. */
  version = "";
  event = "";
  /** Number of open watches of the cache, and of those that cover the whole resource. */
  watches = 0;
  wholeWatches = 0;
  /** Clock reading of the last periodic bookmark; -1: none yet. */
  bookmarkAt = -1;
  /** Clock reading at which the cache got its first open watch, and at which it last delivered a newer version. */
  watchedSince = 0;
  stillSince = 0;
  stall: Stall | undefined;
  /** Newest version that is too old for this cache: the backend answered a watch from it with 410; "": none. */
  refused = "";
  #hasForgotten = false;

  constructor(backend: string, resource: string) {
    this.backend = backend;
    this.resource = resource;
  }

  join(isWhole: boolean, now: number): void {
    if (this.watches === 0) {
      this.watchedSince = now;
      this.stillSince = now;
    }
    this.watches += 1;
    if (isWhole) this.wholeWatches += 1;
  }

  leave(isWhole: boolean): void {
    this.watches -= 1;
    if (isWhole) this.wholeWatches -= 1;
  }

  /** Called for each event that a watch of this cache delivers. */
  showEvent(version: string, now: number): void {
    const ahead = compareVersions(version, this.version);
    if (ahead === 0) this.event = this.version;
    else if (ahead < 0) this.event = compareVersions(version, this.event) > 0 ? version : this.event;
    else {
      this.event = version;
      this.#reach(version, now);
    }
  }

  /** Called for each bookmark. The bookmark that ends initial events is not periodic, so `bookmarkAt` stays. */
  showBookmark({ version, endsInitialEvents }: WatchEvent, now: number): void {
    if (!endsInitialEvents) this.bookmarkAt = now;
    if (compareVersions(version, this.version) > 0) this.#reach(version, now);
  }

  /** Records a 410 to a watch from `version`. `oldest`: the oldest accepted version; "": the 410 names none. */
  refuse(version: string, oldest: string): void {
    // If `oldest` is not newer than the refused version, it contradicts the refusal and is ignored.
    const isSaid = compareVersions(oldest, version) > 0;
    const newest = isSaid ? versionBefore(oldest) : version;
    if (compareVersions(newest, this.refused) <= 0) return;
    this.refused = newest;
    this.#hasForgotten = true;
  }

  /** True if `refused` has become newer since the last call of this method. */
  takeForgotten(): boolean {
    const hasForgotten = this.#hasForgotten;
    this.#hasForgotten = false;
    return hasForgotten;
  }

  /** Returns the ms for which the cache has been known to be stalled; -1 if it is not stalled. */
  stalledMs(now: number): number {
    return this.stall !== undefined && this.isStalled(now) ? now - this.stall.since : -1;
  }

  isStalled(now: number): boolean {
    return this.stall !== undefined && now < this.stall.until;
  }

  #reach(version: string, now: number): void {
    this.version = version;
    this.stillSince = now;
  }
}

/** The newest event version that any backend had delivered at the clock reading `at`. */
export type Mark = { readonly version: string; readonly at: number };

/** A cache that has lacked an event of another backend for longer than a threshold. */
export type LagSuspicion = {
  readonly cache: CacheProgress;
  /** Version of the oldest missing event. */
  readonly version: string;
  readonly behindMs: number;
  /** True if this cache has since sent a bookmark older than the missing event, which proves that the cache lags. */
  readonly isProven: boolean;
  /** True if any backend sends bookmarks for this resource. A resource without a watch cache has none. */
  readonly hasBookmarks: boolean;
  /** All missing versions, oldest first. */
  readonly missing: readonly Mark[];
};

/** The condition under which a cache that lacks an event becomes suspect. */
type Threshold = {
  /** Returns, for a backend, the ms for which its cache must have lacked the event. */
  readonly afterMs: (backend: string) => number;
  /** True if the cache must also have delivered nothing new during these ms. */
  readonly isStill: boolean;
};

const stalling: Threshold = { afterMs: () => limits.behindMs, isStill: true };

/** The caches of one resource or scope at all backends, and the marks (`Mark`) by which they are compared. */
class Peers {
  readonly caches = new Map<string, CacheProgress>();
  readonly #markMs: number;
  /** Newest version that any backend delivered before it was removed or became dead; "": none. */
  #seen = "";
  /** Marks, oldest first. */
  #marks: Mark[] = [];

  /** `markMs`: least ms between two marks while a cache lacks an event. */
  constructor(markMs: number) {
    this.#markMs = markMs;
  }

  get isWatched(): boolean {
    return this.caches.values().some(({ watches, stall }) => watches > 0 || stall !== undefined);
  }

  /** Newest version that any backend has delivered, in an event or a bookmark; "": none. */
  get seen(): string {
    return newestOf(this.caches.values(), ({ version }) => version, this.#seen);
  }

  forget(backend: string): void {
    this.#seen = this.seen;
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

  /** Moves the marks `ms` later, because the proxy's event loop stood still and did not read what arrived meanwhile. */
  discountStall(ms: number): void {
    this.#marks = this.#marks.map(({ version, at }) => ({ version, at: at + ms }));
  }

  /** Adds and drops marks. A bookmark adds none: its version may be that of a change of another resource. */
  #mark(now: number): void {
    const latest = newestOf(this.caches.values(), ({ event }) => event);
    const slowest = this.#slowest;
    const isLacked = (mark: Mark): boolean => slowest !== undefined && lacks(slowest, mark);
    const last = this.#marks.at(-1);
    const isDue = last === undefined || now - last.at >= this.#markMs || !isLacked(last);
    if (isDue && compareVersions(latest, last?.version ?? "") > 0)
      this.#marks.push({ version: latest, at: now });
    // Drops the marks that all caches have reached. The last mark stays, so that its version is not added again as new.
    const shown = this.#marks.findIndex(isLacked);
    const kept = shown === -1 ? 1 : Math.min(this.#marks.length - shown, watchLimits.cacheMarks);
    if (this.#marks.length > kept) this.#marks = this.#marks.slice(-kept);
  }

  /** The cache with the oldest version among the caches that have an open watch; undefined if there is none. */
  get #slowest(): CacheProgress | undefined {
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
 * Finds caches that lack an event that another backend has delivered. A cache of a resource is *stalled* if it also
 * delivers nothing new for 8 s. A cache of a scope *lags* sooner: after the ms for which a PING may stay unanswered.
 */
export class CacheTracker {
  readonly #resources = new Map<string, Peers>();
  readonly #scopes = new Map<string, Peers>();
  readonly #stalled = new Set<CacheProgress>();

  /** Returns the progress of a cache. Beyond `comparedResources`, the caches of a new resource are not compared. */
  of(backend: string, resource: string): CacheProgress {
    return progressIn(this.#resources, backend, resource, 0);
  }

  ofScope(backend: string, scope: string): CacheProgress {
    return progressIn(this.#scopes, backend, scope, watchLimits.lagMarkMs);
  }

  /** Returns a suspicion for each cache that lacked an event, and delivered nothing new, for `limits.behindMs`. */
  stalling(now: number): LagSuspicion[] {
    return [...this.#resources.values()].flatMap((peers) => peers.suspicions(now, stalling));
  }

  /** Returns a suspicion for each cache of a scope that has lacked an event for `afterMs`. */
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

  /** True if the backend has accepted a watch of this resource since that backend was last dead or new. */
  knows(backend: string, resource: string): boolean {
    return this.#resources.get(resource)?.caches.has(backend) === true;
  }

  /** Returns the backends that have answered with 410 that this version is too old for their cache (watch.md §5.4). */
  refusing(resource: string, version: string): readonly string[] {
    const caches = this.#resources.get(resource)?.caches.values().toArray() ?? [];
    const refusing = caches.filter(({ refused }) => compareVersions(version, refused) <= 0);
    return refusing.length === 0 ? none : refusing.map(({ backend }) => backend);
  }

  /** Returns the caches whose `refused` has become newer since the last call. */
  takeForgetful(): CacheProgress[] {
    const all = this.#resources.values().flatMap(({ caches }) => caches.values());
    return all.filter((cache) => cache.takeForgotten()).toArray();
  }

  get resources(): number {
    return this.#resources.size;
  }

  /** Forgets the caches of a dead or removed backend, because a backend that returns has new caches. */
  forget(backend: string): void {
    for (const all of [this.#resources, this.#scopes])
      for (const [name, peers] of all) {
        peers.forget(backend);
        if (peers.caches.size === 0 && peers.seen === "") all.delete(name);
      }
    for (const cache of this.#stalled) if (cache.backend === backend) this.#stalled.delete(cache);
  }

  /** Returns the newest version of this resource that clients may have seen; "": none is known. */
  seen(resource: string): string {
    return this.#resources.get(resource)?.seen ?? "";
  }

  /** Forgets all versions that clients have seen, because no backend has that etcd history any more (histories.ts). */
  forgetSeen(): void {
    this.#resources.clear();
    this.#stalled.clear();
  }

  reconcile(names: readonly string[]): void {
    const all = [...this.#resources.values(), ...this.#scopes.values()].flatMap(({ caches }) => [
      ...caches.keys(),
    ]);
    for (const backend of new Set(all)) if (!names.includes(backend)) this.forget(backend);
  }

  // --- stalled caches ---

  markStalled({ cache, version }: LagSuspicion, now: number): void {
    const before = cache.stall;
    const spellMs =
      before === undefined
        ? watchLimits.stallSpellMs
        : Math.min(watchLimits.stallSpellMostMs, 2 * before.spellMs);
    cache.stall = { version, since: before?.since ?? now, until: now + spellMs, spellMs };
    this.#stalled.add(cache);
  }

  /** Returns the stalled caches that have delivered the events that they lacked, and ends their stall. */
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

  /** Returns the backends whose cache of this resource is stalled. */
  stalledWith(resource: string, now: number): readonly string[] {
    return this.#stalledNow(now).flatMap((cache) => (cache.resource === resource ? [cache.backend] : []));
  }

  /** Returns the resources whose cache at this backend is stalled. */
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

function progressIn(all: Map<string, Peers>, backend: string, name: string, markMs: number): CacheProgress {
  const known = all.get(name);
  const progress = known?.caches.get(backend) ?? new CacheProgress(backend, name);
  if (known === undefined && !hasRoom(all)) return progress;
  const peers = known ?? new Peers(markMs);
  all.set(name, peers);
  peers.caches.set(backend, progress);
  return progress;
}

/** True if one more resource or scope may be compared. At the limit, makes room: drops one that no watch covers. */
function hasRoom(all: Map<string, Peers>): boolean {
  if (all.size < watchLimits.comparedResources) return true;
  for (const [name, peers] of all) if (!peers.isWatched) return all.delete(name);
  return false;
}

// --- what it means that one upstream stream delivers nothing ---

/**
 * True if the cache has delivered something new since the stream was accepted, but after `caughtUpMs` has not reached
 * the version that the stream was requested from. Then etcd's versions went back, for example because etcd was restored
 * from a backup. The apiserver accepts such a watch, but sends nothing until etcd's versions have passed the requested
 * one (k/k 107457, watch.md §11 row 13). A cache that delivers nothing new is no evidence, because it may be stalled.
 */
export function isRewound(
  { from, since }: Pick<Coverage, "from" | "since">,
  { version, stillSince }: CacheProgress,
  now: number,
): boolean {
  const isMoving = stillSince > since;
  return isMoving && now - since >= watchLimits.caughtUpMs && compareVersions(version, from) < 0;
}

/** The events of its backend's cache that an upstream stream must deliver. */
export type Coverage = {
  /** Version that the stream was requested from; "" if the request named none. */
  readonly from: string;
  /** Clock reading at which the backend's response was accepted. */
  readonly since: number;
  /** True if the stream covers the whole resource, in every namespace. */
  readonly isWhole: boolean;
  readonly hasBookmarks: boolean;
};

/**
 * True if this stream proves that the cache lacks a missing event, because the stream would have delivered the event by
 * now. A stream of the whole resource delivers it within `wholeMs`. Any other stream would show by its next bookmark
 * that the cache has the event: a cache that moves sends one within 62.3 s (watch.md §6.1), also after a move (§6.4).
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
    // If the stream was opened at about the time of the event, the stream's initial state may include the event. Then
    // the stream never delivers the event, and its silence is no evidence.
    const isEarlier = since + watchLimits.sightMs <= at;
    return isEarlier && compareVersions(from, version) < 0 && now - Math.max(at, stillSince) >= withinMs;
  });
}
