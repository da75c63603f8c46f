/**
 * How long PINGs to one backend take, and what that says about silence. A histogram whose counts fade, so that it costs
 * the same for 2 upstream connections and 600, and so that what was an hour ago does not matter.
 */

/** Edges grow by a quarter, from a tenth of a millisecond to about 80 s: a deadline errs by that much at most. */
const firstEdgeMs = 0.1;
const growth = 1.25;
const edges = 62;
/** Counts halve in this time. One hole puts one late answer on each upstream connection among four a second: 0.4 % of what counts. */
const halfLifeMs = 40_000;

export type PingTimes = { readonly suspectAfterMs: number; readonly deadAfterMs: number };

export class Rtt {
  readonly #counts = new Float64Array(edges);
  #total = 0;
  #fadedAt = 0;

  /** One PING took `ms`. */
  add(ms: number): void {
    const at = Math.ceil(Math.log(Math.max(ms, firstEdgeMs) / firstEdgeMs) / Math.log(growth));
    const bucket = Math.min(edges - 1, at);
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#total += 1;
  }

  /** Lets what is old count less; to be called now and then with the clock's reading. */
  fade(now: number): void {
    const kept = 0.5 ** ((now - this.#fadedAt) / halfLifeMs);
    this.#fadedAt = now;
    for (let at = 0; at < edges; at += 1) this.#counts[at] = (this.#counts[at] ?? 0) * kept;
    this.#total *= kept;
  }

  get hasSamples(): boolean {
    return this.#total > 0;
  }

  /** The time, in ms, within which this share of the PINGs was answered; 0 before the first. */
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
   * Silence is suspicious after 8 × p99, and certain after twice that, but never sooner than the floors. Sixteen times
   * the median bounds the first: a few late answers among many prompt ones are holes, and mean no great distance.
   */
  deadlines(floor: PingTimes): PingTimes {
    const farMs = Math.min(8 * this.quantile(0.99), 16 * this.quantile(0.5));
    const suspectAfterMs = Math.max(floor.suspectAfterMs, farMs);
    return { suspectAfterMs, deadAfterMs: Math.max(floor.deadAfterMs, 2 * suspectAfterMs) };
  }
}
