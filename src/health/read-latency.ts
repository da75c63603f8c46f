/**
 * Measures how long one backend takes to read one object, and counts consecutive reads that another backend answered
 * and this one did not. A backend that cannot reach etcd answers PINGs and reads from its cache, but consistent reads
 * hang for a minute. No I/O.
 */

import type { Evidence } from "./evidence.ts";
import { healthLimits } from "./limits.ts";
import { Rtt } from "./rtt.ts";

export class ReadLatency extends Rtt {
  #lostHedges = 0;
  #longestWaitMs = 0;

  /**
   * Returns the milliseconds after which a read is hedged: at least 2 × p99, so that fewer than 1 % of reads get a
   * hedge.
   */
  hedgeAfterMs(leastMs: number): number {
    return Math.max(leastMs, 2 * this.quantile(0.99));
  }

  /**
   * Counts a read that this backend did not answer within `ms`, although another backend did. Returns evidence from the
   * third such read in a row on; undefined before that.
   */
  lostHedge(ms: number, limitMs: number): Evidence | undefined {
    this.#lostHedges += 1;
    this.#longestWaitMs = Math.max(this.#longestWaitMs, ms);
    if (this.#lostHedges < healthLimits.hungReads) return undefined;
    return { kind: "reads-hanging", count: this.#lostHedges, ms: this.#longestWaitMs, limitMs };
  }

  /** True if this backend did not answer its latest read in time, but another backend did. */
  get isDoubted(): boolean {
    return this.#lostHedges > 0;
  }

  /**
   * Called when the backend has answered a request that requires etcd. Resets the count of `lostHedge`. Returns
   * evidence that the backend answers again if `lostHedge` has reported hanging reads; otherwise undefined.
   */
  proven(): Evidence | undefined {
    const wasReported = this.#lostHedges >= healthLimits.hungReads;
    this.#lostHedges = 0;
    this.#longestWaitMs = 0;
    return wasReported ? { kind: "reads-answer" } : undefined;
  }
}
