/**
 * Divides the reads of one client among several backends. A client that causes a large part of all load would otherwise
 * overload whichever backend it is bound to (D2).
 *
 * Only reads that cannot go back in time are divided (observe/spread-reads.ts). The balance (balance/spreads.ts) starts
 * the spread, sets each backend's part of the reads, and removes the spread:
 *
 *     state      input                                            becomes
 *     divided    the client causes little load                    gathering
 *                fewer than two backends are ready                gathering
 *                a backend's cache is older than the client's     gathering
 *     gathering  `gatherMs` later                                 removed
 *     any        the client disconnects                           removed
 *
 * While the reads gather, all of them go to the client's own backend. Lists from a cache still demand the version that
 * the client has received, because the cache of the client's own backend may be older than the other caches.
 */
import { WorkMeter } from "./work-meter.ts";

const goldenRatio = (Math.sqrt(5) - 1) / 2;

export class ReadSpread {
  readonly meter = new WorkMeter();
  #state: "divided" | "gathering" = "divided";
  #parts: ReadonlyMap<string, number> = new Map();
  /** In [0, 1). */
  #draw = 0;
  #mixedAt: number;

  /** `now`: a clock reading. */
  constructor(now: number) {
    this.#mixedAt = now;
  }

  toString(): string {
    const parts = Array.from(this.#parts, ([backend, part]) => `${backend} ${part.toFixed(2)}`).join(", ");
    return `${this.#state} ${parts}`;
  }

  /** Each backend's part of the reads. */
  get parts(): ReadonlyMap<string, number> {
    return this.#parts;
  }

  /** Sets the part of the reads that each backend gets. The parts add up to 1. Empty: all go to the client's own. */
  divide(parts: ReadonlyMap<string, number>): void {
    this.#parts = parts;
  }

  /**
   * Returns the backend for the next read; undefined: the client's own. Multiples of the golden ratio choose it, because
   * they keep the parts, also for reads that repeat in a fixed order.
   */
  next(): string | undefined {
    if (this.isGathering) return undefined;
    this.#draw = (this.#draw + goldenRatio) % 1;
    let left = this.#draw;
    for (const [backend, part] of this.#parts) {
      left -= part;
      if (left < 0) return backend;
    }
    return undefined;
  }

  gather(): void {
    this.#state = "gathering";
  }

  get isGathering(): boolean {
    return this.#state === "gathering";
  }

  /**
   * Records a request whose response, or whose effect, may be newer than the version that the client's lists demand.
   */
  mixes(now: number): void {
    this.#mixedAt = now;
  }

  /** Ms since the last such request, or since the spread began. */
  unmixedMs(now: number): number {
    return now - this.#mixedAt;
  }
}
