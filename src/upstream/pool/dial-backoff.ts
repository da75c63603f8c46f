/** Decides when a backend may be dialled: a limited number of times a second, and with growing pauses after a loss. */

import type { Clock } from "../../base/clock.ts";
import { TokenBucket } from "../../base/token-bucket.ts";
import { upstreamLimits } from "./limits.ts";
import type { PoolKey } from "./pool-key.ts";

export class DialBackoff {
  readonly #clock: Clock;
  readonly #again: () => void;
  readonly #usual: TokenBucket;
  readonly #unproven: TokenBucket;
  /**
   * A separate budget for clients whose requests get 401, because each 401 may cost the proxy a connection. Dials for
   * these clients thus leave the budget of the other clients untouched.
   */
  readonly #rejected: TokenBucket;
  #pauseMs: number = upstreamLimits.redialFirstMs;
  #stopAgain: (() => void) | undefined;

  /** `again`: called when a lost connection should be dialled again. */
  constructor(clock: Clock, again: () => void) {
    this.#clock = clock;
    this.#again = again;
    const { dialsPerSecond: usual, unprovenDialsPerSecond: few } = upstreamLimits;
    this.#usual = new TokenBucket(clock, usual, usual);
    this.#unproven = new TokenBucket(clock, few, few);
    this.#rejected = new TokenBucket(clock, few, few);
  }

  /** Takes one dial from the budget for this key. Returns false if the budget is used up. */
  take({ trust, owner }: PoolKey): boolean {
    if (trust !== "unproven") return this.#usual.take();
    return (owner === "" ? this.#unproven : this.#rejected).take();
  }

  /** Records that a dial has succeeded: after the next loss, the first pause is short again. */
  succeeded(): void {
    this.#pauseMs = upstreamLimits.redialFirstMs;
  }

  /** Schedules a dial, unless one is scheduled already. Each pause is longer than the last, until a dial succeeds. */
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
