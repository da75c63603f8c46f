/**
 * How long one backend takes for the read of one object, and what it means when another backend has to answer instead.
 * One whose way to etcd is cut answers PING and serves its caches, and whoever asks it for an object as it is now waits
 * for a minute. Pure: what was measured goes in, a bound or evidence comes out.
 */

import type { Evidence } from "./evidence.ts";
import { healthLimits } from "./limits.ts";
import { Rtt } from "./rtt.ts";

export class Reads {
  readonly #times = new Rtt();
  /** Reads in a row that another backend had to answer, and the longest that one of them had waited here, in ms. */
  #lostHedge = 0;
  #longestMs = 0;

  /** One was answered here, `ms` after it was sent. */
  answered(ms: number): void {
    this.#times.add(ms);
  }

  /** Lets what is old count less; to be called now and then with the clock's reading. */
  fade(now: number): void {
    this.#times.fade(now);
  }

  /**
   * A read that has waited for longer, in ms, is asked elsewhere too: at twice the p99 that is fewer than one in a
   * hundred, however slow this backend is; and no sooner than a PING would be missed, as far away as it is.
   */
  patienceMs(leastMs: number): number {
    return Math.max(leastMs, 2 * this.#times.quantile(0.99));
  }

  /** One was silent here for `ms` while another backend answered it. Three in a row are no accident. */
  lostHedge(ms: number, limitMs: number): Evidence | undefined {
    this.#lostHedge += 1;
    this.#longestMs = Math.max(this.#longestMs, ms);
    if (this.#lostHedge < healthLimits.hungReads) return undefined;
    return { kind: "reads-hanging", count: this.#lostHedge, ms: this.#longestMs, limitMs };
  }

  /** Has one of late been answered elsewhere only? */
  get isDoubted(): boolean {
    return this.#lostHedge > 0;
  }

  /** Something was answered here for which a backend has to ask etcd. */
  proven(): Evidence | undefined {
    const wasTold = this.#lostHedge >= healthLimits.hungReads;
    this.#lostHedge = 0;
    this.#longestMs = 0;
    return wasTold ? { kind: "reads-answer" } : undefined;
  }
}
