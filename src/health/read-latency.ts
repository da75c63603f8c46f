/**
 * How long one backend takes to read one object, and evidence when other backends must answer instead. A backend whose
 * path to etcd is broken answers PING and serves its caches, while consistent reads hang for a minute. Pure:
 * measurements in, a deadline or evidence out.
 */

import type { Evidence } from "./evidence.ts";
import { healthLimits } from "./limits.ts";
import { Rtt } from "./rtt.ts";

export class Reads extends Rtt {
  /** Reads in a row that another backend had to answer, and the longest wait of one of them here, in ms. */
  #lostHedges = 0;
  #longestMs = 0;

  /**
   * Returns the wait, in ms, after which a read is hedged. Twice the p99 hedges fewer than one in a hundred, however
   * slow this backend is; and it is never shorter than the time after which a PING counts as missing at the backend's
   * distance.
   */
  hedgeAfterMs(leastMs: number): number {
    return Math.max(leastMs, 2 * this.quantile(0.99));
  }

  /** A read was unanswered here for `ms` and another backend answered it. Three in a row are evidence. */
  lostHedge(ms: number, limitMs: number): Evidence | undefined {
    this.#lostHedges += 1;
    this.#longestMs = Math.max(this.#longestMs, ms);
    if (this.#lostHedges < healthLimits.hungReads) return undefined;
    return { kind: "reads-hanging", count: this.#lostHedges, ms: this.#longestMs, limitMs };
  }

  /** True if a recent read was answered only elsewhere. */
  get isDoubted(): boolean {
    return this.#lostHedges > 0;
  }

  /** A request that requires etcd was answered here. */
  proven(): Evidence | undefined {
    const wasTold = this.#lostHedges >= healthLimits.hungReads;
    this.#lostHedges = 0;
    this.#longestMs = 0;
    return wasTold ? { kind: "reads-answer" } : undefined;
  }
}
