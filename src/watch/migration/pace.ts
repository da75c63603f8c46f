/**
 * How fast watches are asked for elsewhere (D6): as fast as the others take it, and slower once one of them says that it
 * is too much.
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";

export class Pace {
  readonly #clock: Clock;
  #perSecond: number = limits.movesPerSecond;
  #tokens: number = limits.moveBurst;
  #at: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#at = clock.now();
  }

  /** May one be asked for now? */
  get isOpen(): boolean {
    this.#refill();
    return this.#tokens >= 1;
  }

  take(): boolean {
    if (!this.isOpen) return false;
    this.#tokens -= 1;
    return true;
  }

  /** Half as fast from now on, and back to the full pace within ten seconds. */
  slowDown(): void {
    this.#refill();
    this.#perSecond = Math.max(limits.movesPerSecondLeast, this.#perSecond / 2);
    this.#tokens = 0;
  }

  #refill(): void {
    const now = this.#clock.now();
    const ms = now - this.#at;
    this.#at = now;
    this.#tokens = Math.min(limits.moveBurst, this.#tokens + (ms * this.#perSecond) / 1000);
    this.#perSecond = Math.min(
      limits.movesPerSecond,
      this.#perSecond + (ms * limits.movesPerSecond) / 10_000,
    );
  }
}
