/**
 * Limits how fast watches move (D6). The rate is `movesPerSecond` at first, rises while backends accept moved watches
 * promptly, and falls if they take longer or answer 429. Watches of the control plane have a separate rate, so they
 * need not wait for other watches.
 */
import type { Clock } from "../../base/clock.ts";
import { TokenBucket } from "../../base/token-bucket.ts";
import type { Urgency } from "../../ledger/urgency.ts";
import { watchLimits } from "../limits.ts";

export class MovePace {
  readonly #clock: Clock;
  readonly #all: TokenBucket;
  readonly #first: TokenBucket;
  /**
   * Since the clock reading `#since`: the sum of the ms that backends took to accept watches, and the number of
   * accepted watches.
   */
  #sumMs = 0;
  #count = 0;
  #since = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#all = new TokenBucket(clock, watchLimits.moveBurst, watchLimits.movesPerSecond);
    this.#first = new TokenBucket(clock, watchLimits.firstMoveBurst, watchLimits.movesPerSecond);
  }

  /** True if a watch of this urgency may move now. */
  isOpen(urgency: Urgency): boolean {
    return this.#of(urgency).isOpen;
  }

  take(urgency: Urgency): boolean {
    return this.#of(urgency).take();
  }

  /**
   * Called when a backend has accepted a moved watch. `ms`: time since the request was sent, less the round-trip time.
   */
  accepted(ms: number): void {
    this.#sumMs += ms;
    this.#count += 1;
    const now = this.#clock.now();
    const sinceMs = now - this.#since;
    if (sinceMs < watchLimits.paceLookMs) return;
    const meanMs = this.#sumMs / this.#count;
    const { perSecond } = this.#all;
    const isUsed = sinceMs < 2 * watchLimits.paceLookMs && this.#count * 2000 >= perSecond * sinceMs;
    if (meanMs > watchLimits.slowAcceptMs) this.#scale(watchLimits.paceFall);
    else if (meanMs < watchLimits.promptAcceptMs && isUsed) this.#scale(watchLimits.paceRise);
    this.#sumMs = 0;
    this.#count = 0;
    this.#since = now;
  }

  /** Called when a backend has answered 429. */
  slowDown(): void {
    this.#all.slowDown(watchLimits.movesPerSecondLeast);
  }

  /** The present limit of moves per second. */
  get perSecond(): number {
    return this.#all.perSecond;
  }

  #scale(factor: number): void {
    this.#all.scale(factor, watchLimits.movesPerSecondLeast, watchLimits.movesPerSecondMost);
  }

  #of(urgency: Urgency): TokenBucket {
    return urgency === 0 ? this.#first : this.#all;
  }
}
