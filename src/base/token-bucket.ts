/**
 * A token bucket: `burst` tokens at once, `perSecond` after that. It never holds more than its burst, or than the
 * maximum that `earn` names, so that honest work cannot save up tokens for an attack (A4).
 */
import type { Clock } from "./clock.ts";

/** A reduced rate returns to the full rate within this time. */
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
   * Takes `cost` tokens; false if fewer are left. `bonus` raises the limit for this call by the caller's current
   * activity. After a pause up to two bursts pass at once, since the clock is read only when the first burst is used
   * up; `isOpen` reads it earlier.
   */
  take(cost = 1, bonus = 0): boolean {
    this.#tokens -= cost;
    // The clock is read only when the tokens run out, which most sessions never reach.
    if (this.#tokens >= 0) return true;
    this.#refill(this.#burst - cost);
    if (this.#tokens + bonus >= 0) return true;
    // A rejected request costs nothing: otherwise a steady excess would block what the rate allows.
    this.#tokens += cost;
    return false;
  }

  /** True if a token is available. */
  get isOpen(): boolean {
    this.#refill(this.#burst);
    return this.#tokens >= 1;
  }

  /** Returns `count` tokens, up to `most` available: earned tokens are bounded, so that they cannot be hoarded (A4). */
  earn(count: number, most: number): void {
    if (this.#tokens < most) this.#tokens = Math.min(most, this.#tokens + count);
  }

  /** Empties the bucket and halves its rate, which stays at or above `leastPerSecond` and recovers within 10 s. */
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
