/**
 * Keeps one sentinel for each resource (D13): while two backends are ready, one watch of the resource also has a second
 * stream, on another backend. The apiserver keeps one watch cache per resource, so one sentinel is enough to detect a
 * lagging or stalled cache, and a backend with another etcd history. If the second backend creates its cache on demand,
 * the sentinel also makes it initialise the cache early. If the first backend is lost, the watch continues on the
 * second one at once.
 */
import type { Clock } from "../../base/clock.ts";
import { Interval } from "../../base/interval.ts";
import type { Backends } from "../../health/backends.ts";
import type { CacheTracker } from "../cache/cache-progress.ts";
import { watchLimits } from "../limits.ts";
import type { Migrations } from "../migration/migrations.ts";
import type { WatchSession } from "../session/watch-session.ts";
import type { BookmarkRefresher } from "./bookmark-refresh.ts";

type SentinelsParts = {
  readonly clock: Clock;
  readonly backends: Pick<Backends, "views">;
  readonly caches: CacheTracker;
  readonly migrations: Migrations;
  readonly refresher: Pick<BookmarkRefresher, "warmed">;
};

/**
 * State of one resource's sentinel (D13). A sentinel is a watch that also has a second stream, on another backend. While
 * no second stream is open, the state is that of the latest attempt to open one.
 */
type SentinelState = {
  watch: WatchSession | undefined;
  /** The backend that was last asked for the second stream. */
  backend: string;
  isAccepted: boolean;
  askedAt: number;
  /** True from a backend's refusal of the second stream until a backend accepts it. */
  wasRefused: boolean;
  /** Backends that refused the second stream. Value: clock reading until which the backend is skipped. */
  readonly pauses: Map<string, number>;
};

type Sentinel = { readonly resource: string; readonly watch: WatchSession; readonly backend: string };

export class Sentinels extends Interval {
  readonly #parts: SentinelsParts;
  readonly #posts = new Map<string, SentinelState>();

  constructor(parts: SentinelsParts) {
    super(parts.clock, watchLimits.sentinelLookMs, () => this.#look());
    this.#parts = parts;
  }

  /** The sentinels whose second stream is open, each with the backend of its second stream. */
  get all(): readonly Sentinel[] {
    return Array.from(this.#posts).flatMap(([resource, { watch, backend }]) =>
      watch?.isPosted === true && watch.second?.isAccepted === true ? [{ resource, watch, backend }] : [],
    );
  }

  get count(): number {
    return this.all.length;
  }

  #look(): void {
    const { watches } = this.#parts.migrations;
    const resources = new Set(watches.resources);
    for (const resource of this.#posts.keys()) if (!resources.has(resource)) this.#posts.delete(resource);
    const ready = this.#parts.backends.views.filter(({ state }) => state === "ready");
    if (ready.length < 2) return;
    const names = ready.map(({ name }) => name);
    let left: number = watchLimits.sentinelsAtOnce;
    for (const resource of resources) {
      if (left === 0) return;
      if (this.#posts.size >= watchLimits.sentinels && !this.#posts.has(resource)) continue;
      if (this.#tend(resource, names)) left -= 1;
    }
  }

  /**
   * Keeps the sentinel of one resource, or finds a new one. Returns true if a backend was asked to open the second
   * stream of a new sentinel.
   */
  #tend(resource: string, ready: readonly string[]): boolean {
    const post = this.#posts.get(resource) ?? noSentinel();
    this.#posts.set(resource, post);
    const isKept = this.#follow(post);
    const found = this.#find(resource, post, ready, isKept);
    if (found === undefined) return false;
    const { watch, backend } = found;
    if (isKept && post.watch !== watch) post.watch?.dropSecond();
    post.watch = watch;
    post.backend = backend;
    post.isAccepted = false;
    post.askedAt = this.#parts.clock.now();
    this.#parts.migrations.post(watch, backend);
    return true;
  }

  /** True if the second stream of the resource's sentinel is open, or a backend may still accept it. */
  #follow(post: SentinelState): boolean {
    const now = this.#parts.clock.now();
    for (const [backend, until] of post.pauses) if (until <= now) post.pauses.delete(backend);
    if (post.watch === undefined) return false;
    if (this.#stands(post, post.watch, now)) return true;
    if (!post.isAccepted) {
      post.pauses.set(post.backend, now + watchLimits.sentinelPauseMs);
      post.wasRefused = true;
    }
    post.watch = undefined;
    return false;
  }

  #stands(post: SentinelState, watch: WatchSession, now: number): boolean {
    if (!watch.isPosted || watch.second?.attempt.backend !== post.backend) return false;
    if (watch.second.isAccepted && !post.isAccepted) this.#accepted(post, watch.resource);
    // The proxy waits only `resumeAnswerMs` for the backend's answer. Then it asks another backend.
    const isWaitedFor = post.isAccepted || now - post.askedAt < watchLimits.resumeAnswerMs;
    if (!isWaitedFor) watch.dropSecond();
    return isWaitedFor;
  }

  #accepted(post: SentinelState, resource: string): void {
    post.isAccepted = true;
    // The backend refused the stream while it was initialising its watch cache. The cache therefore begins now, and
    // watches on other backends need newer versions before they can move to this backend.
    if (post.wasRefused) this.#parts.refresher.warmed({ backend: post.backend, resource });
    post.wasRefused = false;
  }

  /**
   * Returns the watch and the backend for a new sentinel, or for a sentinel that is better than the present one;
   * undefined: there are none. Prefers a watch of the whole resource, because such a watch compares the most events.
   * Prefers a backend that has accepted no watch of the resource yet: such a backend may not have initialised its watch
   * cache, and the sentinel makes it do so before the clients need the cache.
   */
  #find(
    resource: string,
    post: SentinelState,
    ready: readonly string[],
    isKept: boolean,
  ): { readonly watch: WatchSession; readonly backend: string } | undefined {
    const { watches } = this.#parts.migrations;
    const whole = watches.wholeOf(resource);
    const { watch: present } = post;
    if (isKept && present !== undefined) {
      if (!post.isAccepted) return undefined;
      const cold = present.isSentinel ? this.#coldFor(present, post, ready) : undefined;
      if (cold !== undefined) return { watch: present, backend: cold };
      return whole.has(present) ? undefined : this.#firstOf(whole, post, ready);
    }
    return this.#firstOf(whole, post, ready) ?? this.#firstOf(watches.partOf(resource), post, ready);
  }

  /**
   * Returns the first suitable watch that gets bookmarks; if none does, the first suitable watch. With bookmarks, the
   * caches can be compared even while no object changes.
   */
  #firstOf(
    watches: Iterable<WatchSession>,
    post: SentinelState,
    ready: readonly string[],
  ): { readonly watch: WatchSession; readonly backend: string } | undefined {
    let second: { readonly watch: WatchSession; readonly backend: string } | undefined;
    let tries: number = watchLimits.sentinelTries;
    for (const watch of watches) {
      if (tries === 0) break;
      tries -= 1;
      if (second !== undefined && !watch.mayBeRefreshed) continue;
      const backend = this.#backendFor(watch, post, ready);
      if (backend === undefined) continue;
      if (watch.mayBeRefreshed) return { watch, backend };
      second = { watch, backend };
    }
    return second;
  }

  #backendFor(watch: WatchSession, post: SentinelState, ready: readonly string[]): string | undefined {
    const { attempt, second, mayHedge } = watch;
    if (attempt === undefined || second !== undefined || !mayHedge || !ready.includes(attempt.backend))
      return undefined;
    const cold = this.#coldFor(watch, post, ready);
    if (cold !== undefined) return cold;
    const { targets } = this.#parts.migrations;
    const except = [attempt.backend, ...post.pauses.keys(), ...targets.refusing(watch)];
    const others = targets.fitAmong(watch, ready).filter((name) => !except.includes(name));
    const stalled = targets.stalled(watch);
    return others.find((name) => !stalled.includes(name)) ?? others[0];
  }

  /**
   * Returns a ready backend that has accepted no watch of the resource since the backend was added or was last dead.
   */
  #coldFor(watch: WatchSession, post: SentinelState, ready: readonly string[]): string | undefined {
    const { caches, migrations } = this.#parts;
    const { attempt, second, resource } = watch;
    const refusing = migrations.targets.refusing(watch);
    // At most `comparedResources` resources are tracked. For any other resource, it is unknown which backends have
    // accepted a watch.
    if (attempt === undefined || !caches.knows(attempt.backend, resource)) return undefined;
    return migrations.targets
      .fitAmong(watch, ready)
      .find(
        (name) =>
          name !== attempt.backend &&
          name !== second?.attempt.backend &&
          !post.pauses.has(name) &&
          !refusing.includes(name) &&
          !caches.knows(name, resource),
      );
  }
}

function noSentinel(): SentinelState {
  return {
    watch: undefined,
    backend: "",
    isAccepted: false,
    askedAt: 0,
    wasRefused: false,
    pauses: new Map(),
  };
}
