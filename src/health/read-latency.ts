/**
 * Measures how long one backend takes to read one object, and notices when other backends must answer instead: one
 * whose path to etcd is broken answers PINGs and cached reads, while consistent reads hang for a minute. Pure.
 */

import type { Evidence } from "./evidence.ts";
import { healthLimits } from "./limits.ts";
import { Rtt } from "./rtt.ts";

export class ReadLatency extends Rtt {
  /** Number of reads in a row that another backend had to answer, and the longest of their waits, in milliseconds. */
  #lostHedges = 0;
  #longestMs = 0;

  /**
   * Returns the milliseconds after which a read is also sent to another backend: fewer than one in a hundred takes 2 ×
   * p99.
   */
  hedgeAfterMs(leastMs: number): number {
    return Math.max(leastMs, 2 * this.quantile(0.99));
  }

  /** Counts a read that this backend left unanswered for `ms` while another answered. The third in a row is evidence. */
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

  /** Ends that count, because this backend has answered a request that requires etcd. */
  proven(): Evidence | undefined {
    const wasReported = this.#lostHedges >= healthLimits.hungReads;
    this.#lostHedges = 0;
    this.#longestMs = 0;
    return wasReported ? { kind: "reads-answer" } : undefined;
  }
}
