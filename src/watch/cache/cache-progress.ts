/**
 * Tracks how far the watch cache of each backend has come with each resource and each scope (`WatchContext.scope`), by
 * the events and bookmarks of its watches (watch.md §4). Versions are compared within one resource only (§6.3). Silence
 * alone proves nothing: a cache that lacks an event of another backend is suspected, and a watch that should have
 * delivered the event is the proof (`wouldShow`).
 */
import { limits } from "../../base/limits.ts";
import { compareVersions, versionBefore } from "../../kube/resource-version.ts";
import type { WatchEvent } from "../codec/event.ts";
import { watchLimits } from "./limits.ts";

const none: readonly string[] = [];

/** Until the clock reading `until`, watches avoid this stalled cache. A repeated stall lasts twice as long. */
type Stall = {
  /** Version that other backends had delivered and this one had not. */
  readonly version: string;
  readonly since: number;
  readonly until: number;
  readonly spellMs: number;
};

/** How far one backend's cache of a resource or scope has come, by all watches of it. Times are clock readings. */
export class CacheProgress {
  readonly backend: string;
  readonly resource: string;
  /** Newest version that the cache has delivered, and newest version of an event; "": none yet. */
  version = "";
  event = "";
  /** Number of open watches of the cache, and of those that cover the whole resource. */
  watches = 0;
  wholeWatches = 0;
  /** When the last bookmark came; -1 before the first. */
  bookmarkAt = -1;
  /** When the cache got its first open watch, and when it last delivered something new. */
  watchedSince = 0;
  stillSince = 0;
  stall: Stall | undefined;
  /** Newest version from which the backend refused a watch with 410, because its cache lacks later events; "": none. */
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

  /** Takes an event that a watch of this cache has delivered. */
  showEvent(version: string, now: number): void {
    const ahead = compareVersions(version, this.version);
    if (ahead === 0) this.event = this.version;
    else if (ahead < 0) this.event = compareVersions(version, this.event) > 0 ? version : this.event;
    else {
      this.event = version;
      this.#reach(version, now);
    }
  }

  /** Takes a bookmark, which proves that the cache has come this far. One after initial events is not periodic. */
  showBookmark({ version, endsInitialEvents }: WatchEvent, now: number): void {
    if (!endsInitialEvents) this.bookmarkAt = now;
    if (compareVersions(version, this.version) > 0) this.#reach(version, now);
  }

  /** Takes a 410 to a watch from `version`. `oldest`: the oldest accepted version; "": the 410 names none. */
  refuse(version: string, oldest: string): void {
    // An `oldest` that is not newer than the refused version contradicts the refusal and is ignored.
    const isSaid = compareVersions(oldest, version) > 0;
    const newest = isSaid ? versionBefore(oldest) : version;
    if (compareVersions(newest, this.refused) <= 0) return;
    this.refused = newest;
    this.#hasForgotten = true;
  }

  /** True if `refused` has grown since the last call. */
  takeForgotten(): boolean {
    const hasForgotten = this.#hasForgotten;
    this.#hasForgotten = false;
    return hasForgotten;
  }

  /** Returns for how many ms the cache has been known to be stalled; -1: it is not. */
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

/** The version of the newest event that any backend had delivered at a time. */
export type Mark = { readonly version: string; readonly at: number };

/** A cache that has lacked an event of another backend for longer than a threshold. */
export type LagSuspicion = {
  readonly cache: CacheProgress;
  /** Version of the oldest missing event. */
  readonly version: string;
  readonly behindMs: number;
  /** True if a bookmark of this cache has since been older than the missing event, which proves that it lags. */
  readonly isProven: boolean;
  /** True if any backend sends bookmarks for this resource. A resource without a watch cache has none. */
  readonly hasBookmarks: boolean;
  /** All missing versions, oldest first. */
  readonly missing: readonly Mark[];
};

/** The condition under which a cache that lacks an event becomes suspect. */
type Threshold = {
  /** Ms for which the cache must have lacked the event, by backend. */
  readonly afterMs: (backend: string) => number;
  /** True if it must also have delivered nothing new for that time. */
  readonly isStill: boolean;
};

const stalling: Threshold = { afterMs: () => limits.behindMs, isStill: true };

/** The caches of one resource or scope at all backends, and the marks by which they are compared. */
class Peers {
  readonly caches = new Map<string, CacheProgress>();
  readonly #markMs: number;
  /** Newest version that backends had delivered that are now removed or dead; "": none. */
  #seen = "";
  /** The marks, oldest first. */
  #marks: Mark[] = [];

  /** `markMs`: least time in ms between two marks while a cache lacks an event. */
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

  /** Moves the marks `ms` later: the proxy's event loop stood still and has not read what came meanwhile. */
  discountStall(ms: number): void {
    this.#marks = this.#marks.map(({ version, at }) => ({ version, at: at + ms }));
  }

  /** Adds and drops marks. Versions of bookmarks are no marks, because they may come from other resources. */
  #mark(now: number): void {
    const latest = newestOf(this.caches.values(), ({ event }) => event);
    const slowest = this.#slowest;
    const isLacked = (mark: Mark): boolean => slowest !== undefined && lacks(slowest, mark);
    const last = this.#marks.at(-1);
    const isDue = last === undefined || now - last.at >= this.#markMs || !isLacked(last);
    if (isDue && compareVersions(latest, last?.version ?? "") > 0)
      this.#marks.push({ version: latest, at: now });
    // Drops the marks that all caches have reached. The last one stays, so that it is not added again as new.
    const shown = this.#marks.findIndex(isLacked);
    const kept = shown === -1 ? 1 : Math.min(this.#marks.length - shown, watchLimits.cacheMarks);
    if (this.#marks.length > kept) this.#marks = this.#marks.slice(-kept);
  }

  /** The cache with the oldest version among those with a watch; undefined if none has one. */
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
 * delivers nothing new for 8 s. A cache of a scope *lags* earlier, after the silence that makes a PING suspicious.
 */
export class CacheTracker {
  readonly #resources = new Map<string, Peers>();
  readonly #scopes = new Map<string, Peers>();
  readonly #stalled = new Set<CacheProgress>();

  /** Returns the progress of a cache, which its watches keep. Beyond the limit a new resource is not compared. */
  of(backend: string, resource: string): CacheProgress {
    return progressIn(this.#resources, backend, resource, 0);
  }

  ofScope(backend: string, scope: string): CacheProgress {
    return progressIn(this.#scopes, backend, scope, watchLimits.lagMarkMs);
  }

  /** Returns the caches that lacked an event, and delivered nothing new, for `behindMs`. Called every second. */
  stalling(now: number): LagSuspicion[] {
    return [...this.#resources.values()].flatMap((peers) => peers.suspicions(now, stalling));
  }

  /** Returns the caches of scopes that have lacked an event for `afterMs`. Called several times a second. */
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

  /** True if the backend has accepted a watch of this resource since it was forgotten last. */
  knows(backend: string, resource: string): boolean {
    return this.#resources.get(resource)?.caches.has(backend) === true;
  }

  /** Returns the backends whose caches begin after this version, which a 410 has shown (watch.md §5.4). */
  refusing(resource: string, version: string): readonly string[] {
    const caches = this.#resources.get(resource)?.caches.values().toArray() ?? [];
    const refusing = caches.filter(({ refused }) => compareVersions(version, refused) <= 0);
    return refusing.length === 0 ? none : refusing.map(({ backend }) => backend);
  }

  /** Returns the caches whose `refused` has grown since the last call. */
  takeForgetful(): CacheProgress[] {
    const all = this.#resources.values().flatMap(({ caches }) => caches.values());
    return all.filter((cache) => cache.takeForgotten()).toArray();
  }

  get resources(): number {
    return this.#resources.size;
  }

  /** Forgets a dead or removed backend. If it returns, its caches are new ones. */
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

  /** Forgets the backends that are not among `names`. */
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

  /** Returns the stalled caches that have delivered what they lacked, and ends their stall. */
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

  /** True if no cache is marked as stalled. */
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

/** True if one more resource or scope may be compared. At the limit, drops one that no watch covers. */
function hasRoom(all: Map<string, Peers>): boolean {
  if (all.size < watchLimits.comparedResources) return true;
  for (const [name, peers] of all) if (!peers.isWatched) return all.delete(name);
  return false;
}

// --- what the silence of one upstream stream means ---

/**
 * True if the cache moves but has not reached the version of the stream's request for `caughtUpMs`. Then etcd's
 * versions went back, for example because it was restored from a backup. The apiserver accepts such a watch and sends
 * nothing until its versions have passed the requested one (k/k 107457, watch.md §11 row 13). A cache that does not
 * move is no evidence, because it may be stalled.
 */
export function isRewound(
  { from, since }: Pick<Coverage, "from" | "since">,
  { version, stillSince }: CacheProgress,
  now: number,
): boolean {
  const isMoving = stillSince > since;
  return isMoving && now - since >= watchLimits.caughtUpMs && compareVersions(version, from) < 0;
}

/** Which events of its backend's cache an upstream stream must deliver. */
export type Coverage = {
  /** Version that the stream was requested from; "" if the request named none. */
  readonly from: string;
  /** Clock reading at which the response was accepted. */
  readonly since: number;
  /** True if the stream covers the whole resource, in every namespace. */
  readonly isWhole: boolean;
  readonly hasBookmarks: boolean;
};

/**
 * True if this stream proves that the cache lacks a missing event, because it would have delivered the event by now. A
 * stream of the whole resource delivers it within `wholeMs`. Any other shows it by its next bookmark, which comes
 * within 62.3 s from a cache that moves (watch.md §6.1), also after a move (§6.4).
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
    // A stream opened at about the time of the event may have got a state that includes it, so its silence is no
    // evidence.
    const isEarlier = since + watchLimits.sightMs <= at;
    return isEarlier && compareVersions(from, version) < 0 && now - Math.max(at, stillSince) >= withinMs;
  });
}
