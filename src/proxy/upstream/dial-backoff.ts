/** Decides when a backend may be dialled: up to a number of dials a second, and with growing pauses after a loss. */

import type { Clock } from "../../base/clock.ts";
import { TokenBucket } from "../../base/token-bucket.ts";
import { upstreamLimits } from "./limits.ts";
import type { PoolKey } from "./pool-key.ts";

export class DialBackoff {
  readonly #clock: Clock;
  readonly #again: () => void;
  readonly #usual: TokenBucket;
  readonly #unproven: TokenBucket;
  /** A separate budget for clients whose requests backends reject: each rejection may cost a connection. */
  readonly #rejected: TokenBucket;
  #pauseMs: number = upstreamLimits.redialFirstMs;
  #stopAgain: (() => void) | undefined;

  /** `again` is called when a lost connection should be dialled again. */
  constructor(clock: Clock, again: () => void) {
    this.#clock = clock;
    this.#again = again;
    const { dialsPerSecond: usual, unprovenDialsPerSecond: few } = upstreamLimits;
    this.#usual = new TokenBucket(clock, usual, usual);
    this.#unproven = new TokenBucket(clock, few, few);
    this.#rejected = new TokenBucket(clock, few, few);
  }

  /** Takes one dial from the budget for this key. Returns false if the budget is spent. */
  take({ trust, owner }: PoolKey): boolean {
    if (trust !== "unproven") return this.#usual.take();
    return (owner === "" ? this.#unproven : this.#rejected).take();
  }

  /** Called when a dial has succeeded. The first pause after the next loss is then the shortest again. */
  succeeded(): void {
    this.#pauseMs = upstreamLimits.redialFirstMs;
  }

  /** Schedules a dial, after a longer pause each time. Does nothing if a dial is already scheduled. */
  soon(): void {
    if (this.#stopAgain !== undefined) return;
    this.#stopAgain = this.#clock.after(this.#pauseMs, () => {
      this.#pauseMs = Math.min(upstreamLimits.redialMostMs, this.#pauseMs * 2);
      this.#again();
    });
  }

  stop(): void {
    this.#stopAgain?.();
    this.#stopAgain = undefined;
  }
}
