/**
 * Pages that a full heap has left go back. V8 takes them out of its heap, and out of what it tells of it, but keeps them for
 * the next time until next to nothing else happens: a hundred MiB after an attack. A collection that is asked for frees them.
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import type { HeapState } from "./heap-monitor.ts";

export class HeapRelease {
  readonly #clock: Clock;
  readonly #collect: () => void;
  /** The most that a full collection has left since pages went back. */
  #peakBytes = 0;
  #isDue = false;
  #collectedAt = Number.NEGATIVE_INFINITY;

  /** `collect`: a full collection whose pages go back. */
  constructor(clock: Clock, collect: () => void) {
    this.#clock = clock;
    this.#collect = collect;
  }

  look({ residentBytes }: Pick<HeapState, "residentBytes">): void {
    this.#peakBytes = Math.max(this.#peakBytes, residentBytes);
    this.#isDue = this.#peakBytes - residentBytes > Math.max(residentBytes, limits.heapPagesBytes);
  }

  /** To be called every `limits.heapLookMs`. */
  beat(): void {
    const now = this.#clock.now();
    if (!this.#isDue || now - this.#collectedAt < limits.heapPagesMs) return;
    this.#isDue = false;
    this.#peakBytes = 0;
    this.#collectedAt = now;
    this.#collect();
  }
}
