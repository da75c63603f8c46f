/**
 * Divides the reads of one client among several backends. A client that causes a large part of all load would otherwise
 * overload whichever backend it is bound to (D2).
 *
 * A read is divided only if its response cannot be older than what the client has already seen
 * (observe/spread-reads.ts). balance/spreads.ts starts the spread, sets each backend's part of the reads, and removes
 * the spread:
 *
 *     state      input                                            becomes
 *     divided    the client causes little load                    gathering
 *                fewer than two backends are ready                gathering
 *                a cache lacks what the client has received       gathering
 *     gathering  `gatherMs` later                                 removed
 *     any        the client disconnects                           removed
 *
 * While the reads gather, all of them go to the client's own backend, to which the client is bound. Lists from a cache
 * still demand the version that the client has received, because the own backend's cache may be older than the others.
 */
import { WorkMeter } from "./work-meter.ts";

const goldenRatio = (Math.sqrt(5) - 1) / 2;

export class ReadSpread {
  readonly meter = new WorkMeter();
  #state: "divided" | "gathering" = "divided";
  #parts: ReadonlyMap<string, number> = new Map();
  /** Selects the backend of the latest read: the fractional part of a multiple of the golden ratio. */
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

  /** Sets the part of the reads that each backend gets. The parts add up to 1. If empty, all go to the own backend. */
  divide(parts: ReadonlyMap<string, number>): void {
    this.#parts = parts;
  }

  /**
   * Returns the backend for the next read; undefined: the client's own backend. Multiples of the golden ratio select
   * it, so that each backend gets its part even if the client repeats its reads in a fixed order.
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

  /** Returns the ms since the last call of `mixes`; before the first call, the ms since the spread began. */
  unmixedMs(now: number): number {
    return now - this.#mixedAt;
  }
}
