/**
 * How far the watch cache of each backend has come, by resource and by scope, as its watches show (watch.md §4). Versions
 * are compared within one resource only (watch.md §6.3). Silence alone proves nothing: a cache that lacks what another
 * backend has delivered is suspected, and its watches that should have delivered it decide (`wouldShow`).
 */
import { limits } from "../../base/limits.ts";
import { compareVersions, versionBefore } from "../../kube/resource-version.ts";
import type { WatchEvent } from "../codec/event.ts";
import { watchLimits } from "./limits.ts";

const none: readonly string[] = [];

/**
 * The backend is avoided for this resource until `until`. If its cache is found stalled again after that, the time
 * doubles.
 */
export type Stall = {
  /** The version that other backends had delivered and this one had not. */
  readonly version: string;
  readonly since: number;
  readonly until: number;
  readonly spellMs: number;
};

/** How far one backend has come with one resource or scope, as all its watches together show. Times are clock readings. */
export class CacheProgress {
  readonly backend: string;
  readonly resource: string;
  /** The newest version that it has delivered, and the newest of an event. */
  version = "";
  event = "";
  /** The number of its open watches, and of those that see the whole resource. */
  watches = 0;
  wholeWatches = 0;
  /** When the last bookmark came; -1 before the first. */
  bookmarkAt = -1;
  /** When it got its first open watch, and when it last delivered something new. */
  watchedSince = 0;
  stillSince = 0;
  stall: Stall | undefined;
  /** The newest version that it refused with 410: the events after that version are no longer in its cache. */
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

  /** One of its watches delivers an event of this version. Called for each event, nearly always with the newest version. */
  showEvent(version: string, now: number): void {
    const ahead = compareVersions(version, this.version);
    // The event is no newer than the cache.
    if (ahead === 0) this.event = this.version;
    else if (ahead < 0) this.event = compareVersions(version, this.event) > 0 ? version : this.event;
    else {
      this.event = version;
      this.#reach(version, now);
    }
  }

  /**
   * A bookmark proves that the cache has come this far. The marker is the end of a list; only the others come every
   * minute.
   */
  showBookmark({ version, endsInitialEvents }: WatchEvent, now: number): void {
    if (!endsInitialEvents) this.bookmarkAt = now;
    if (compareVersions(version, this.version) > 0) this.#reach(version, now);
  }

  /**
   * The backend answered a watch from this version with 410. `oldest`: the first version that it accepts, "" if not
   * named.
   */
  refuse(version: string, oldest: string): void {
    // An `oldest` that is not newer than the refused version contradicts the refusal and is ignored.
    const isSaid = compareVersions(oldest, version) > 0;
    const newest = isSaid ? versionBefore(oldest) : version;
    if (compareVersions(newest, this.refused) <= 0) return;
    this.refused = newest;
    this.#hasForgotten = true;
  }

  /** True if it has refused a newer version than before; returned once for each. */
  takeForgotten(): boolean {
    const hasForgotten = this.#hasForgotten;
    this.#hasForgotten = false;
    return hasForgotten;
  }

  /** How long it has been known to be stalled, in ms; -1 if it is not. */
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

/** The newest event of a resource or scope that any backend had delivered at a time. */
export type Mark = { readonly version: string; readonly at: number };

/** A cache that has not delivered for long enough what another backend has. */
export type LagSuspicion = {
  readonly cache: CacheProgress;
  /** The oldest version that it lacks. */
  readonly version: string;
  readonly behindMs: number;
  /** True if a bookmark came since and the cache is no further, which is proof. */
  readonly isProven: boolean;
  /** True if watches of this resource have bookmarks at all: those of an uncached one have none. */
  readonly hasBookmarks: boolean;
  /** All versions that it has not delivered, oldest first. */
  readonly missing: readonly Mark[];
};

/** When a cache that lacks an event is suspected. */
type Threshold = {
  /** How long the cache must have lacked the event. */
  readonly afterMs: (backend: string) => number;
  /** True if it must also have delivered nothing new for that time. */
  readonly isStill: boolean;
};

const stalling: Threshold = { afterMs: () => limits.behindMs, isStill: true };

/** The backends' caches of one resource or scope, and what they are compared by. */
class Peers {
  readonly caches = new Map<string, CacheProgress>();
  readonly #markMs: number;
  /** The newest version that removed or dead backends had delivered. */
  #seen = "";
  /** Oldest first. */
  #marks: Mark[] = [];

  /** `markMs`: the least time between two marks while a cache lacks something. */
  constructor(markMs: number) {
    this.#markMs = markMs;
  }

  get isWatched(): boolean {
    return this.caches.values().some(({ watches, stall }) => watches > 0 || stall !== undefined);
  }

  /** The newest version that any backend has delivered, of an event or a bookmark. */
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

  /** The proxy's own event loop stood still for `ms`: what arrived meanwhile may still be unread. */
  discountStall(ms: number): void {
    this.#marks = this.#marks.map(({ version, at }) => ({ version, at: at + ms }));
  }

  /** Only versions of events must reach every cache: a bookmark may be of a revision of other resources. */
  #mark(now: number): void {
    const latest = newestOf(this.caches.values(), ({ event }) => event);
    const slowest = this.#slowest;
    const isLacked = (mark: Mark): boolean => slowest !== undefined && lacks(slowest, mark);
    const last = this.#marks.at(-1);
    const isDue = last === undefined || now - last.at >= this.#markMs || !isLacked(last);
    if (isDue && compareVersions(latest, last?.version ?? "") > 0)
      this.#marks.push({ version: latest, at: now });
    // Marks that all caches have reached suspect none of them. The last mark stays, so that it is not added again as new.
    const shown = this.#marks.findIndex(isLacked);
    const kept = shown === -1 ? 1 : Math.min(this.#marks.length - shown, watchLimits.cacheMarks);
    if (this.#marks.length > kept) this.#marks = this.#marks.slice(-kept);
  }

  /** The cache that lacks the most, among those that have a watch. */
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
 * Finds caches that lack what others have delivered, at two thresholds: *stalled* ones by resource, after 8 s without
 * anything new; *lagging* ones by scope, after the silence that makes a PING suspicious.
 */
export class CacheTracker {
  readonly #resources = new Map<string, Peers>();
  readonly #scopes = new Map<string, Peers>();
  readonly #stalled = new Set<CacheProgress>();

  /**
   * Returns the same object for each call, because watches keep it. Beyond the limit of resources, new ones are not
   * compared.
   */
  of(backend: string, resource: string): CacheProgress {
    return progressIn(this.#resources, backend, resource, 0);
  }

  ofScope(backend: string, scope: string): CacheProgress {
    return progressIn(this.#scopes, backend, scope, watchLimits.lagMarkMs);
  }

  /** Caches that have lacked something, and delivered nothing new, for `limits.behindMs`. To be called about every second. */
  stalling(now: number): LagSuspicion[] {
    return [...this.#resources.values()].flatMap((peers) => peers.suspicions(now, stalling));
  }

  /** Caches of whole scopes that have lacked something for `afterMs`. To be called several times a second. */
  lagging(now: number, afterMs: (backend: string) => number): LagSuspicion[] {
    const threshold = { afterMs, isStill: false };
    const lagging: LagSuspicion[] = [];
    for (const peers of this.#scopes.values())
      if (peers.caches.size > 1) lagging.push(...peers.suspicions(now, threshold));
    return lagging;
  }

  /** The proxy's own event loop stood still for `ms`: what arrived meanwhile may still be unread. */
  discountStall(ms: number): void {
    for (const peers of this.#scopes.values()) peers.discountStall(ms);
  }

  /** True if the backend accepted a watch of this resource since it was forgotten last. */
  knows(backend: string, resource: string): boolean {
    return this.#resources.get(resource)?.caches.has(backend) === true;
  }

  /** Returns the backends that cannot continue from this version: a cache never regains old versions (watch.md §5.4). */
  refusing(resource: string, version: string): readonly string[] {
    const caches = this.#resources.get(resource)?.caches.values().toArray() ?? [];
    const refusing = caches.filter(({ refused }) => compareVersions(version, refused) <= 0);
    return refusing.length === 0 ? none : refusing.map(({ backend }) => backend);
  }

  /** The caches that have refused a newer version than before; each is returned once. */
  takeForgetful(): CacheProgress[] {
    const all = this.#resources.values().flatMap(({ caches }) => caches.values());
    return all.filter((cache) => cache.takeForgotten()).toArray();
  }

  get resources(): number {
    return this.#resources.size;
  }

  /** A dead or removed backend is no longer compared: its cache after the return is a new one. */
  forget(backend: string): void {
    for (const all of [this.#resources, this.#scopes])
      for (const [name, peers] of all) {
        peers.forget(backend);
        if (peers.caches.size === 0 && peers.seen === "") all.delete(name);
      }
    for (const cache of this.#stalled) if (cache.backend === backend) this.#stalled.delete(cache);
  }

  /** The newest version of this resource that clients may have seen; "" if none is known. */
  seen(resource: string): string {
    return this.#resources.get(resource)?.seen ?? "";
  }

  /** No backend has the history that clients have seen: from now on the new one is the right one. */
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

  /** Stalled caches that have now delivered what they lacked; each is returned once. */
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

  /** True if no cache is to be avoided. */
  get isClear(): boolean {
    return this.#stalled.size === 0;
  }

  /** The backends whose cache of this resource is stalled. */
  stalledWith(resource: string, now: number): readonly string[] {
    return this.#stalledNow(now).flatMap((cache) => (cache.resource === resource ? [cache.backend] : []));
  }

  /** The resources whose cache is stalled at a backend. */
  stalledAt(backend: string, now: number): readonly string[] {
    return this.#stalledNow(now).flatMap((cache) => (cache.backend === backend ? [cache.resource] : []));
  }

  /** How many caches are stalled, for metrics. */
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

/** A resource without a watch makes room. */
function hasRoom(all: Map<string, Peers>): boolean {
  if (all.size < watchLimits.comparedResources) return true;
  for (const [name, peers] of all) if (!peers.isWatched) return all.delete(name);
  return false;
}

// --- what the silence of one upstream stream means ---

/**
 * True if a stream continues from a version that its backend has not reached, although its cache moves. No cache lags so
 * far for so long: etcd was restored from a backup, for example, and versions went back. The apiserver accepts such a
 * watch and sends nothing until its versions have passed that one (k/k 107457, watch.md §11 row 13). A cache that does
 * not move is no evidence.
 */
export function isRewound(
  { from, since }: Pick<Coverage, "from" | "since">,
  { version, stillSince }: CacheProgress,
  now: number,
): boolean {
  const isMoving = stillSince > since;
  return isMoving && now - since >= watchLimits.caughtUpMs && compareVersions(version, from) < 0;
}

/** What one upstream stream of a watch must deliver of its backend's cache. */
export type Coverage = {
  /** The version that it was requested from; "" if the request named none. */
  readonly from: string;
  /** When its response was accepted. */
  readonly since: number;
  /** True if it sees the whole resource, in every namespace. */
  readonly isWhole: boolean;
  readonly hasBookmarks: boolean;
};

/**
 * True if this stream would have delivered by now what others have, if its backend had it. A stream of the whole resource
 * would have at once. Any other would have with its next bookmark, which comes within 62.3 s from a cache that moves
 * (watch.md §6.1). This includes watches that were moved there (§6.4). `wholeMs`: the time allowed for a stream of the
 * whole resource.
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
