/**
 * Divides the reads of one client among several backends. A client that causes a large part of all load would otherwise
 * overload whichever backend it is bound to (D2).
 *
 * Only reads that cannot go back in time are divided (observe/spread-reads.ts). The balance (balance/balance.ts) starts
 * the spread, sets each backend's part of the reads, and ends the spread:
 *
 *     state      input                                            becomes
 *     spread     the client causes little load                    gathering
 *                a backend's cache is older than the client's     gathering
 *     gathering  `gatherMs` later                                 removed
 *
 * While the reads gather, all of them go to the client's own backend. Lists from a cache still demand the version that
 * the client has received, because the cache of the client's own backend may be older than the other caches.
 */
import type { WorkMeter } from "./work-meter.ts";

type Part = { readonly backend: string; readonly part: number; credit: number };

export class ReadSpread {
  readonly #meter: WorkMeter;
  #state: "spread" | "gathering" = "spread";
  #parts: readonly Part[];
  #readsCache = false;

  /** `meter`: has measured the client's work before the spread. `backend`: gets all reads until `divide` is called. */
  constructor(meter: WorkMeter, backend: string) {
    this.#meter = meter;
    this.#parts = [{ backend, part: 1, credit: 0 }];
  }

  toString(): string {
    const parts = this.#parts.map(({ backend, part }) => `${backend} ${part.toFixed(2)}`).join(", ");
    return `${this.#state} ${parts}`;
  }

  /** Sets the part of the reads that each backend gets. The parts add up to 1. */
  divide(parts: ReadonlyMap<string, number>): void {
    this.#parts = Array.from(parts, ([backend, part]) => ({ backend, part, credit: 0 }));
  }

  /** Returns the backend for the next read: the one that lags furthest behind its part. Undefined: the client's own. */
  next(): string | undefined {
    if (this.isGathering) return undefined;
    let best: Part | undefined;
    for (const one of this.#parts) {
      one.credit += one.part;
      if (best === undefined || one.credit > best.credit) best = one;
    }
    if (best !== undefined) best.credit -= 1;
    return best?.backend;
  }

  /** Adds the work of a read, in bytes. Returns the work since the last `averageWork`. */
  works(bytes: number): number {
    return this.#meter.add(bytes);
  }

  /** Returns the work per second of the reads, as a moving average with the time constant `ms`. */
  averageWork(now: number, ms: number): number {
    return this.#meter.average(now, ms);
  }

  gather(): void {
    this.#state = "gathering";
  }

  get isGathering(): boolean {
    return this.#state === "gathering";
  }

  /**
   * Records that the client reads from the cache of its own backend in a way that cannot demand a version. Its lists
   * from caches are then no longer divided, because the next such read could return older data.
   */
  readsCache(): void {
    this.#readsCache = true;
  }

  get mayDivideCached(): boolean {
    return !this.#readsCache;
  }
}
