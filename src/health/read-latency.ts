/**
 * Measures how long one backend takes to read one object, and counts reads that other backends had to answer instead. A
 * backend that cannot reach etcd answers PINGs and cached reads, but consistent reads hang for a minute. Pure.
 */

import type { Evidence } from "./evidence.ts";
import { healthLimits } from "./limits.ts";
import { Rtt } from "./rtt.ts";

export class ReadLatency extends Rtt {
  /** Number of reads in a row that another backend had to answer, and the longest of their waits, in milliseconds. */
  #lostHedges = 0;
  #longestMs = 0;

  /** Returns the milliseconds after which a read is hedged: 2 × p99, so that this happens to fewer than 1 %. */
  hedgeAfterMs(leastMs: number): number {
    return Math.max(leastMs, 2 * this.quantile(0.99));
  }

  /** Counts a read that this backend did not answer within `ms`, but another did. The third in a row is evidence. */
  lostHedge(ms: number, limitMs: number): Evidence | undefined {
    this.#lostHedges += 1;
    this.#longestMs = Math.max(this.#longestMs, ms);
    if (this.#lostHedges < healthLimits.hungReads) return undefined;
    return { kind: "reads-hanging", count: this.#lostHedges, ms: this.#longestMs, limitMs };
  }

  /** True if another backend had to answer the latest read. */
  get isDoubted(): boolean {
    return this.#lostHedges > 0;
  }

  /**
   * Resets the count of reads that others had to answer, because this backend has answered a request that requires
   * etcd. Returns evidence if the count had been reported.
   */
  proven(): Evidence | undefined {
    const wasReported = this.#lostHedges >= healthLimits.hungReads;
    this.#lostHedges = 0;
    this.#longestMs = 0;
    return wasReported ? { kind: "reads-answer" } : undefined;
  }
}
