/**
 * Round-trip times of PINGs to one backend, and the deadlines that follow from them. A histogram with decaying counts
 * costs the same for 2 and for 600 upstream connections, and forgets old samples.
 */

import { bucketOf, buckets, edgeOf } from "../base/histogram.ts";

/**
 * Half-life in ms of the counts. It is so long that the late answers of one outage make up only 0.4 % of the weight.
 */
const halfLifeMs = 40_000;

export type PingTimes = { readonly suspectAfterMs: number; readonly deadAfterMs: number };

export class Rtt {
  readonly #counts = new Float64Array(buckets);
  #total = 0;
  #fadedAt = 0;

  add(ms: number): void {
    const bucket = bucketOf(ms);
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#total += 1;
  }

  /** Reduces the weight of old samples. `now`: clock reading in ms. Must be called regularly. */
  fade(now: number): void {
    const kept = 0.5 ** ((now - this.#fadedAt) / halfLifeMs);
    this.#fadedAt = now;
    for (let at = 0; at < buckets; at += 1) this.#counts[at] = (this.#counts[at] ?? 0) * kept;
    this.#total *= kept;
  }

  get hasSamples(): boolean {
    return this.#total > 0;
  }

  /** Returns the quantile in ms, for example the 99th percentile for `share` 0.99; 0: no samples. */
  quantile(share: number): number {
    let left = this.#total * (1 - share);
    if (this.#total === 0) return 0;
    for (let at = buckets - 1; at > 0; at -= 1) {
      left -= this.#counts[at] ?? 0;
      if (left < 0) return edgeOf(at);
    }
    return edgeOf(0);
  }

  /**
   * Returns the milliseconds of silence after which a connection is suspect, and after which it is dead. Suspect: 8 ×
   * p99, but at most 16 × the median, because a few late answers among many prompt ones come from outages, not from
   * distance. Dead: twice as long. Neither is below its value in `floor`.
   */
  deadlines(floor: PingTimes): PingTimes {
    const farMs = Math.min(8 * this.quantile(0.99), 16 * this.quantile(0.5));
    const suspectAfterMs = Math.max(floor.suspectAfterMs, farMs);
    return { suspectAfterMs, deadAfterMs: Math.max(floor.deadAfterMs, 2 * suspectAfterMs) };
  }
}
