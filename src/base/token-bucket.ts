/**
 * A token bucket: it holds at most `burst` tokens and gets `perSecond` new tokens a second. A full bucket gets no more
 * tokens, so that a client cannot save up tokens for an attack (A4).
 */
import type { Clock } from "./clock.ts";

const recoveryMs = 10_000;

export class TokenBucket {
  readonly #clock: Clock;
  #burst: number;
  #fullPerMs: number;
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
   * Takes `cost` tokens and returns true. If fewer tokens are left, takes none and returns false. `bonus` counts as
   * additional tokens in this call only. `take` refills the bucket only when it is empty. So after a pause it allows
   * up to two bursts at once: the tokens that were left, and those that were earned during the pause. `isOpen` always
   * refills the bucket.
   */
  take(cost = 1, bonus = 0): boolean {
    this.#tokens -= cost;
    // If tokens are left, the clock is not read. Most sessions never use up their tokens.
    if (this.#tokens >= 0) return true;
    this.#refill(this.#burst - cost);
    if (this.#tokens + bonus >= 0) return true;
    // A rejected call costs no tokens. Otherwise a steady excess of calls would block the allowed calls, too.
    this.#tokens += cost;
    return false;
  }

  get isOpen(): boolean {
    this.#refill(this.#burst);
    return this.#tokens >= 1;
  }

  /** Adds `count` tokens, but never beyond `most`, so that earned tokens cannot be saved up (A4). */
  earn(count: number, most: number): void {
    if (this.#tokens < most) this.#tokens = Math.min(most, this.#tokens + count);
  }

  /** Empties the bucket and halves its rate, but not below `leastPerSecond`. The rate recovers within 10 s. */
  slowDown(leastPerSecond: number): void {
    this.#refill(this.#burst);
    this.#perMs = Math.max(leastPerSecond / 1000, this.#perMs / 2);
    this.#tokens = 0;
  }

  /** Changes burst and rate. Tokens that were earned at the old rate stay, up to the new burst; no tokens are added. */
  resize(burst: number, perSecond: number): void {
    this.#refill(this.#burst);
    this.#burst = burst;
    this.#fullPerMs = perSecond / 1000;
    this.#perMs = this.#fullPerMs;
    this.#tokens = Math.min(burst, this.#tokens);
  }

  get perSecond(): number {
    return this.#perMs * 1000;
  }

  #refill(most: number): void {
    const now = this.#clock.now();
    const ms = now - this.#at;
    this.#at = now;
    this.#tokens = Math.min(most, this.#tokens + ms * this.#perMs);
    const step = (ms * this.#fullPerMs) / recoveryMs;
    this.#perMs = Math.min(this.#fullPerMs, this.#perMs + step);
  }
}
