/**
 * Round-trip times of PINGs to one backend, and the deadlines that follow from them. A histogram with decaying counts
 * costs the same for 2 and for 600 upstream connections, and forgets old samples.
 */

/** Each edge of the histogram is 1.25 times the previous one, up to 80 s: deadlines are at most a quarter too long. */
const firstEdgeMs = 0.1;
const growth = 1.25;
const edges = 62;
/** Half-life of the counts in ms. It is so long that the late answers of one outage have only 0.4 % of the weight. */
const halfLifeMs = 40_000;

export type PingTimes = { readonly suspectAfterMs: number; readonly deadAfterMs: number };

export class Rtt {
  readonly #counts = new Float64Array(edges);
  #total = 0;
  #fadedAt = 0;

  add(ms: number): void {
    const at = Math.ceil(Math.log(Math.max(ms, firstEdgeMs) / firstEdgeMs) / Math.log(growth));
    const bucket = Math.min(edges - 1, at);
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#total += 1;
  }

  /** Reduces the weight of old samples. `now`: clock reading in ms. Must be called regularly. */
  fade(now: number): void {
    const kept = 0.5 ** ((now - this.#fadedAt) / halfLifeMs);
    this.#fadedAt = now;
    for (let at = 0; at < edges; at += 1) this.#counts[at] = (this.#counts[at] ?? 0) * kept;
    this.#total *= kept;
  }

  get hasSamples(): boolean {
    return this.#total > 0;
  }

  /** Returns how many milliseconds this share of the samples, such as 0.99, stays below; 0: no samples. */
  quantile(share: number): number {
    let left = this.#total * (1 - share);
    if (this.#total === 0) return 0;
    for (let at = edges - 1; at > 0; at -= 1) {
      left -= this.#counts[at] ?? 0;
      if (left < 0) return firstEdgeMs * growth ** at;
    }
    return firstEdgeMs;
  }

  /**
   * Returns the milliseconds of silence after which a connection is suspect (8 × p99) and dead (twice that), but at
   * least `floor`. The first is at most 16 × the median: a few late answers among many prompt ones come from outages,
   * not from distance.
   */
  deadlines(floor: PingTimes): PingTimes {
    const farMs = Math.min(8 * this.quantile(0.99), 16 * this.quantile(0.5));
    const suspectAfterMs = Math.max(floor.suspectAfterMs, farMs);
    return { suspectAfterMs, deadAfterMs: Math.max(floor.deadAfterMs, 2 * suspectAfterMs) };
  }
}
