/**
 * Protects one backend while it has just started or is overloaded. A list, or a watch with initial events, costs an
 * apiserver as much as hundreds of other requests, and after a restart thousands of clients list at once. While the
 * shield is up, only a limited number of these requests (the cap) is *admitted*, that is, under way at the backend at
 * the same time. The others wait in the proxy, where they cost the apiserver nothing.
 *
 * The cap adapts as a TCP congestion window does. It begins small and grows by one with every list, until a list is
 * slow or gets 429. The cap then shrinks, and after that it grows by one only with every `cap` lists.
 */
import { Lru } from "../../base/lru.ts";
import { FairQueue } from "../admission/fair-queue.ts";
import { shieldLimits } from "./limits.ts";

export type ShieldedRequest = {
  /** The user, identified by what the proxy has verified about the client. Users share the backend fairly. */
  readonly user: string;
  /** Key of the list's kind; "": unknown. Lists of one kind take about the same time. */
  readonly kind: string;
  /** True until the list, or the watch's initial events, have arrived. */
  readonly isListing: () => boolean;
  /** Called in a later tick when a waiting request is admitted, or should choose a backend again. */
  readonly place: () => void;
  /**
   * Called instead of `place` if the request has waited for too long, or was removed from the full queue to make room
   * for another user's request.
   */
  readonly refuse: () => void;
};

/** A request that waits for a shielded backend, or is admitted there (state "placed"). */
export class ShieldPlace {
  readonly shield: Shield;
  readonly request: ShieldedRequest;
  state: "waiting" | "placed" | "over" = "waiting";
  /** Clock reading at which the request began to wait or, if it is admitted, at which it was admitted. */
  since: number;

  constructor(shield: Shield, request: ShieldedRequest, now: number) {
    this.shield = shield;
    this.request = request;
    this.since = now;
  }

  get user(): string {
    return this.request.user;
  }
}

/** The measurements of a backend from which its shield detects an overload. */
export type ShieldedLoad = {
  readonly refusals: number;
  readonly gets: { readonly ms: number; readonly latestMs: number; readonly isKnown: boolean };
};

export class Shield {
  readonly backend: string;
  readonly #soon: (run: () => void) => void;
  readonly #queue = new FairQueue<ShieldPlace>(shieldLimits.waiting);
  /** The requests that wait, in the order in which they arrived. */
  readonly #waiting = new Set<ShieldPlace>();
  readonly #placed = new Set<ShieldPlace>();
  /** By kind of list: how many ms the fastest list took until its response began. */
  readonly #fastest = new Lru<string, number>(shieldLimits.kinds);
  #cap: number = shieldLimits.firstCap;
  /**
   * True until the first sign of overload. Until then the cap grows by one with each list, so it doubles with every
   * `cap` lists.
   */
  #isGrowing = true;
  /** True while reads of one object are late, so that the cap must not grow. */
  #areReadsLate = false;
  #decreasedAt = Number.NEGATIVE_INFINITY;
  #upUntil = 0;
  #refusalsSeen = 0;
  /** Average time in ms of the backend's reads while the backend is not overloaded; 0: unknown. */
  #usualMs = 0;
  /** Number of requests that this shield has refused since it was created. */
  refused = 0;
  /**
   * True if the backend counts as just started when it next becomes ready: it was down, or it was added while the proxy
   * ran.
   */
  isStarting: boolean;

  /** `soon` runs a function in a later tick. */
  constructor(backend: string, isStarting: boolean, soon: (run: () => void) => void) {
    this.backend = backend;
    this.isStarting = isStarting;
    this.#soon = soon;
  }

  get cap(): number {
    return Math.floor(this.#cap);
  }

  get waiting(): number {
    return this.#queue.size;
  }

  get placed(): number {
    return this.#placed.size;
  }

  /** Number of users with a request that waits or is admitted. */
  get users(): number {
    return this.#queue.users;
  }

  isUp(now: number): boolean {
    return now < this.#upUntil || this.#queue.size > 0;
  }

  get hasRoom(): boolean {
    return this.#queue.size === 0 && this.#placed.size < this.cap;
  }

  /**
   * Puts the shield up if the backend has just started. A backend that is ready when the proxy itself starts gets no
   * shield, because it has probably run for a long time.
   */
  warm(now: number): void {
    if (!this.isStarting) return;
    this.isStarting = false;
    this.#raise(now, shieldLimits.warmMs);
    this.#fastest.clear();
  }

  #raise(now: number, ms: number): void {
    if (!this.isUp(now)) {
      this.#cap = shieldLimits.firstCap;
      this.#isGrowing = true;
    }
    this.#upUntil = Math.max(this.#upUntil, now + ms);
  }

  /**
   * Called every second. Puts the shield up while the backend answers 429, or its reads are slow. While the shield is
   * up and reads of one object are late, the cap shrinks, because renewals of Leases are then late, too.
   */
  judge(now: number, { refusals, gets }: ShieldedLoad, slowness: number): void {
    this.#areReadsLate = gets.latestMs >= shieldLimits.lateMs;
    if (this.#areReadsLate && this.isUp(now)) this.#decrease(0.7, now);
    const hasRefused = refusals > this.#refusalsSeen;
    this.#refusalsSeen = refusals;
    const { slowTimes, slowMs, usualMs, judgeMs, weakMs } = shieldLimits;
    const isSlow = this.#areSlower(gets) || (slowness >= slowTimes && gets.ms >= slowMs);
    if (hasRefused || isSlow) this.#raise(now, weakMs);
    else if (gets.isKnown && gets.ms > 0)
      this.#usualMs =
        this.#usualMs === 0 ? gets.ms : this.#usualMs + ((gets.ms - this.#usualMs) * judgeMs) / usualMs;
  }

  #areSlower({ isKnown, ms }: ShieldedLoad["gets"]): boolean {
    const { slowTimes, slowMs } = shieldLimits;
    return isKnown && this.#usualMs > 0 && ms >= Math.max(slowTimes * this.#usualMs, slowMs);
  }

  /** Admits the request or makes it wait. Returns undefined if the request is refused at once. */
  enter(request: ShieldedRequest, now: number): ShieldPlace | undefined {
    const place = new ShieldPlace(this, request, now);
    if (this.hasRoom) {
      this.#queue.place(place.user);
      this.#take(place, now);
      return place;
    }
    this.#waiting.add(place);
    const displaced = this.#queue.add(place);
    if (displaced !== undefined) this.#refuse(displaced);
    return displaced === place ? undefined : place;
  }

  #take(place: ShieldPlace, now: number): void {
    this.#waiting.delete(place);
    place.state = "placed";
    place.since = now;
    this.#placed.add(place);
  }

  #refuse(place: ShieldPlace): void {
    this.#waiting.delete(place);
    place.state = "over";
    this.refused += 1;
    this.#soon(place.request.refuse);
  }

  /** Called when a request has ended or no longer waits. If it was admitted, admits another one. */
  leave(place: ShieldPlace, now: number): void {
    const { state } = place;
    place.state = "over";
    if (state === "waiting") {
      this.#waiting.delete(place);
      this.#queue.remove(place);
    }
    if (state !== "placed") return;
    this.#placed.delete(place);
    this.#queue.leave(place.user);
    this.#next(now);
  }

  /** Adapts the cap to a response, which began `ms` after the request was sent. */
  answered({ state, request: { kind } }: ShieldPlace, status: number, ms: number, now: number): void {
    if (state !== "placed") return;
    if (status === 429) return this.#decrease(0.5, now);
    if (status >= 300 || kind === "") return;
    const fastest = this.#fastest.get(kind) ?? ms;
    this.#fastest.set(kind, Math.min(ms, fastest * shieldLimits.fastestGrowth));
    const { slowTimes, slowMs, mostCap } = shieldLimits;
    if (ms >= Math.max(slowMs, slowTimes * fastest)) return this.#decrease(0.7, now);
    if (!this.#areReadsLate) this.#cap = Math.min(mostCap, this.#cap + (this.#isGrowing ? 1 : 1 / this.#cap));
    this.#next(now);
  }

  #decrease(factor: number, now: number): void {
    this.#isGrowing = false;
    if (now - this.#decreasedAt < shieldLimits.decreaseMs) return;
    this.#decreasedAt = now;
    this.#cap = Math.max(shieldLimits.leastCap, this.#cap * factor);
  }

  /** Admits waiting requests up to the cap. While several users wait, none of them gets more than half of the cap. */
  #next(now: number): void {
    while (this.#placed.size < this.cap) {
      const place = this.#queue.next(Math.max(1, this.cap >> 1));
      if (place === undefined) return;
      this.#take(place, now);
      this.#soon(place.request.place);
    }
  }

  /**
   * Refuses requests that have waited for `queueMs`, and stops counting admitted requests whose list is complete or
   * takes too long.
   */
  look(now: number, queueMs: number): void {
    for (const place of Array.from(this.#placed))
      if (now - place.since >= shieldLimits.placeMs || !place.request.isListing()) this.leave(place, now);
    for (const place of this.#waiting) {
      if (now - place.since < queueMs) break;
      this.#queue.remove(place);
      this.#refuse(place);
    }
    this.#next(now);
  }

  /** Puts the shield down. All waiting requests choose a backend again. */
  release(): void {
    for (const place of this.#waiting) {
      this.#queue.remove(place);
      place.state = "over";
      this.#soon(place.request.place);
    }
    this.#waiting.clear();
    this.#upUntil = 0;
  }
}
