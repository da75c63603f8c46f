/** When one backend may be dialled: so many upstream connections a second, and after a loss again and again, further and further apart. */

import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { TokenBucket } from "../../base/token-bucket.ts";
import type { PoolKey } from "./pool-key.ts";

export class DialBackoff {
  readonly #clock: Clock;
  readonly #again: () => void;
  readonly #usual: TokenBucket;
  readonly #unproven: TokenBucket;
  /** Each of their answers may cost an upstream connection: what they are dialled takes nothing from newcomers. */
  readonly #rejected: TokenBucket;
  #pauseMs: number = limits.redialFirstMs;
  #stopAgain: (() => void) | undefined;

  /** `again` is called when an upstream connection that was lost should be dialled anew. */
  constructor(clock: Clock, again: () => void) {
    this.#clock = clock;
    this.#again = again;
    const { dialsPerSecond: usual, unprovenDialsPerSecond: few } = limits;
    this.#usual = new TokenBucket(clock, usual, usual);
    this.#unproven = new TokenBucket(clock, few, few);
    this.#rejected = new TokenBucket(clock, few, few);
  }

  /** Takes one dial for such upstream connections; false when the budget is spent. */
  take({ trust, owner }: PoolKey): boolean {
    if (trust !== "unproven") return this.#usual.take();
    return (owner === "" ? this.#unproven : this.#rejected).take();
  }

  /** One has succeeded: the next loss is followed by a dial at once. */
  succeeded(): void {
    this.#pauseMs = limits.redialFirstMs;
  }

  /** Later each time that it fails; once, however often it is said meanwhile. */
  soon(): void {
    if (this.#stopAgain !== undefined) return;
    this.#stopAgain = this.#clock.after(this.#pauseMs, () => {
      this.#pauseMs = Math.min(limits.redialMostMs, this.#pauseMs * 2);
      this.#again();
    });
  }

  /** What is waited for is done now, or no more. */
  stop(): void {
    this.#stopAgain?.();
    this.#stopAgain = undefined;
  }
}
