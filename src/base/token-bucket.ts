/**
 * A token bucket: `burst` at once, `perSecond` after that. A bucket never holds more than its burst, or than what `earn`
 * names as the most, so that honest work cannot buy an attack (A4).
 */
import type { Clock } from "./clock.ts";

/** A rate that was slowed down is back to the full rate after so long. */
const recoveryMs = 10_000;

export class TokenBucket {
  readonly #clock: Clock;
  readonly #burst: number;
  readonly #fullPerMs: number;
  #perMs: number;
  #tokens: number;
  #at: number;

  constructor(clock: Clock, burst: number, perSecond: number) {
    this.#clock = clock;
    this.#burst = burst;
    this.#fullPerMs = perSecond / 1000;
    this.#perMs = this.#fullPerMs;
    this.#tokens = burst;
    this.#at = clock.now();
  }

  /**
   * Takes `cost`; false when that is more than is left. `bonus` widens this one look by what is active now. After a pause up
   * to two bursts pass at once, since the clock is not asked before the first has gone: `isOpen` asks it.
   */
  take(cost = 1, bonus = 0): boolean {
    this.#tokens -= cost;
    // The clock is asked only when the tokens at hand have run out: most sessions never get there.
    if (this.#tokens >= 0) return true;
    this.#refill(this.#burst - cost);
    if (this.#tokens + bonus >= 0) return true;
    // What is refused costs nothing, or a steady excess would starve what the rate allows.
    this.#tokens += cost;
    return false;
  }

  /** True if there is a token to take. */
  get isOpen(): boolean {
    this.#refill(this.#burst);
    return this.#tokens >= 1;
  }

  /** Gives `count` back, up to `most` at hand: what is earned is bounded, so that it cannot be hoarded (A4). */
  earn(count: number, most: number): void {
    if (this.#tokens < most) this.#tokens = Math.min(most, this.#tokens + count);
  }

  /** Empties it, and halves its rate, which is never below `leastPerSecond` and recovers within 10 s. */
  slowDown(leastPerSecond: number): void {
    this.#refill(this.#burst);
    this.#perMs = Math.max(leastPerSecond / 1000, this.#perMs / 2);
    this.#tokens = 0;
  }

  #refill(most: number): void {
    const now = this.#clock.now();
    const ms = now - this.#at;
    this.#at = now;
    this.#tokens = Math.min(most, this.#tokens + ms * this.#perMs);
    this.#perMs = Math.min(this.#fullPerMs, this.#perMs + (ms * this.#fullPerMs) / recoveryMs);
  }
}
