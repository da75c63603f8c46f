/**
 * Limits how fast watches move (D6), so that an apiserver that gets thousands of them still answers its other requests
 * soon. The main limit is a window, the number of requests for watches that may be unanswered at the same time. The
 * window grows while backends accept watches promptly, and shrinks while they do not. A 429 halves the rate. Watches of
 * the control plane have a separate rate, and the window does not apply to them.
 */
import type { Clock } from "../../base/clock.ts";
import { TokenBucket } from "../../base/token-bucket.ts";
import type { Urgency } from "../../ops/ledger/urgency.ts";
import { watchLimits } from "../limits.ts";

const { moveWindow } = watchLimits;

export class MovePace {
  readonly #clock: Clock;
  readonly #all: TokenBucket;
  readonly #first: TokenBucket;
  /**
   * Lets a few watches move while the window is full. A backend may be slow for another reason than these moves, and it
   * may be gone: then it must not stop the moves to the others.
   */
  readonly #beyondWindow: TokenBucket;
  /** A fraction, because each prompt answer adds only a part of 1. */
  #window = 0;
  #unanswered = 0;
  /**
   * For each backend with unanswered requests: their number, and the clock reading of the latest acceptance, or of the
   * first request if none was accepted.
   */
  readonly #byBackend = new Map<string, { count: number; since: number }>();
  /** The shortest time of acceptance in ms of each backend since the window began. */
  readonly #shortestMs = new Map<string, number>();
  /** Clock reading at which the window began. */
  #begunAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#all = new TokenBucket(clock, watchLimits.moveBurst, watchLimits.movesPerSecond);
    this.#first = new TokenBucket(clock, watchLimits.firstMoveBurst, watchLimits.movesPerSecond);
    this.#beyondWindow = new TokenBucket(clock, moveWindow.beyondBurst, moveWindow.beyondPerSecond);
  }

  /** True if a watch of this urgency may move now. */
  isOpen(urgency: Urgency): boolean {
    if (urgency === 0) return this.#first.isOpen;
    return this.#all.isOpen && (this.#hasRoom || this.#beyondWindow.isOpen);
  }

  take(urgency: Urgency): boolean {
    if (urgency === 0) return this.#first.take();
    return this.isOpen(urgency) && this.#all.take() && (this.#hasRoom || this.#beyondWindow.take());
  }

  /** Called for each request for a watch, before it is sent. It may have to wait for a connection. */
  asked(backend: string): void {
    this.#unanswered += 1;
    const its = this.#byBackend.get(backend);
    if (its === undefined) this.#byBackend.set(backend, { count: 1, since: this.#clock.now() });
    else its.count += 1;
  }

  /** Called once for each request: when a backend accepts the watch, or when the proxy gives the request up. */
  settled(backend: string): void {
    this.#unanswered -= 1;
    const its = this.#byBackend.get(backend);
    if (its === undefined) return;
    its.count -= 1;
    if (its.count === 0) this.#byBackend.delete(backend);
  }

  /**
   * Called when a backend has accepted a moved watch. `ms`: time since the request was sent, less the round-trip time.
   */
  accepted(backend: string, ms: number): void {
    this.#beginAnew();
    const shortestMs = Math.max(0, Math.min(this.#shortestMs.get(backend) ?? ms, ms));
    this.#shortestMs.set(backend, shortestMs);
    const lateMs = ms - shortestMs;
    if (lateMs > moveWindow.slowMs) this.#window = Math.max(moveWindow.least, this.#window - 1);
    else if (lateMs <= moveWindow.promptMs && this.#unanswered * 2 >= this.#window)
      this.#window = Math.min(moveWindow.most, this.#window + moveWindow.growth);
    const its = this.#byBackend.get(backend);
    if (its !== undefined) its.since = this.#clock.now();
    this.settled(backend);
  }

  /**
   * The backends that have accepted no watch for `silentMs` and hold at least half of the window. Such a backend may
   * answer PINGs and still never answer a watch. Further requests to it would only fill the window.
   */
  get silent(): readonly string[] {
    const now = this.#clock.now();
    const names: string[] = [];
    for (const [name, { count, since }] of this.#byBackend)
      if (now - since >= moveWindow.silentMs && count * 2 >= this.#window) names.push(name);
    return names;
  }

  /** Called when a backend has answered 429. */
  slowDown(): void {
    this.#all.slowDown(watchLimits.movesPerSecondLeast);
  }

  /** The present state: the window, the number of unanswered requests, and the limit of moves per second. */
  get state(): { readonly window: number; readonly unanswered: number; readonly perSecond: number } {
    return {
      window: Math.floor(this.#window),
      unanswered: this.#unanswered,
      perSecond: this.#all.perSecond,
    };
  }

  get #hasRoom(): boolean {
    this.#beginAnew();
    return this.#unanswered < Math.floor(this.#window);
  }

  /**
   * Begins the window anew every `renewMs`. Otherwise a time of acceptance that was short only once, for example because
   * the round-trip time was estimated too long, would make all later answers late.
   */
  #beginAnew(): void {
    const now = this.#clock.now();
    if (now - this.#begunAt < moveWindow.renewMs) return;
    this.#begunAt = now;
    this.#window = moveWindow.initial;
    this.#shortestMs.clear();
  }
}
