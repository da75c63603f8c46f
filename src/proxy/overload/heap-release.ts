/**
 * Returns the pages of a formerly full heap to the kernel. V8 removes them from its heap and its statistics, but keeps
 * them until the process is nearly idle: a hundred MiB after an attack. A requested collection frees them.
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import type { HeapState } from "./heap-monitor.ts";

export class HeapRelease {
  readonly #clock: Clock;
  readonly #collect: () => void;
  /** The most that a full collection has left since pages were last returned. */
  #peakBytes = 0;
  #isDue = false;
  #collectedAt = Number.NEGATIVE_INFINITY;

  /** `collect`: runs a full collection that returns pages. */
  constructor(clock: Clock, collect: () => void) {
    this.#clock = clock;
    this.#collect = collect;
  }

  look({ residentBytes }: Pick<HeapState, "residentBytes">): void {
    this.#peakBytes = Math.max(this.#peakBytes, residentBytes);
    this.#isDue = this.#peakBytes - residentBytes > Math.max(residentBytes, limits.heapPagesBytes);
  }

  /** Called every `limits.heapLookMs`. */
  beat(): void {
    const now = this.#clock.now();
    if (!this.#isDue || now - this.#collectedAt < limits.heapPagesMs) return;
    this.#isDue = false;
    this.#peakBytes = 0;
    this.#collectedAt = now;
    this.#collect();
  }
}
