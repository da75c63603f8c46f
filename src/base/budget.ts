/**
 * A token bucket: `burst` at once, `perSecond` after that. A bucket never holds more than its burst, or than what `earn`
 * names as the most, so that honest work cannot buy an attack (A4).
 */
import type { Clock } from "./clock.ts";

export class Budget {
  readonly #clock: Clock;
  readonly #burst: number;
  readonly #perMs: number;
  #tokens: number;
  #at: number;

  constructor(clock: Clock, burst: number, perSecond: number) {
    this.#clock = clock;
    this.#burst = burst;
    this.#perMs = perSecond / 1000;
    this.#tokens = burst;
    this.#at = clock.now();
  }

  /** Takes `cost`; false when that is more than is left. `bonus` widens this one look by what is active now. */
  take(cost = 1, bonus = 0): boolean {
    this.#tokens -= cost;
    // The clock is asked only when the tokens at hand have run out: most sessions never get there.
    if (this.#tokens >= 0) return true;
    const now = this.#clock.now();
    this.#tokens = Math.min(this.#burst - cost, this.#tokens + (now - this.#at) * this.#perMs);
    this.#at = now;
    if (this.#tokens + bonus >= 0) return true;
    // What is refused costs nothing, or a steady excess would starve what the rate allows.
    this.#tokens += cost;
    return false;
  }

  /** Gives `count` back, up to `most` at hand: what is earned is bounded, so that it cannot be hoarded (A4). */
  earn(count: number, most: number): void {
    if (this.#tokens < most) this.#tokens = Math.min(most, this.#tokens + count);
  }
}
