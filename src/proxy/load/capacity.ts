/**
 * Estimates which part of its weight a backend can serve, by comparing it with the other backends. If a backend is
 * slower than the others (above `highPressure`), its capacity shrinks step by step; if it is as fast (below
 * `lowPressure`), its capacity grows; in between, its capacity stays the same. Each time the direction changes, the
 * steps become smaller. So the capacity settles, even if moved clients change the backend's speed only a minute later.
 * No I/O.
 */
import { loadLimits } from "./limits.ts";

export class Capacity {
  #share = 1;
  #step: number = loadLimits.capacityStep;
  #direction = 0;
  /** Number of consecutive calls of `regulate` in which the capacity was 1 and stayed 1. */
  #calm = 0;

  /** The share of its weight that the backend can serve: at least `leastCapacity`, at most 1. */
  get share(): number {
    return this.#share;
  }

  /**
   * Changes the capacity. `pressure`: the backend's read times, or its utilisation, as a multiple of the other
   * backends' median.
   */
  regulate(pressure: number): void {
    const direction = this.#directionFor(pressure);
    this.#calm = direction === 0 && this.#share === 1 ? this.#calm + 1 : 0;
    if (this.#calm >= loadLimits.calmSteps) {
      this.#step = loadLimits.capacityStep;
      this.#direction = 0;
    }
    if (direction === 0) return;
    if (direction === -this.#direction) this.#step = Math.max(loadLimits.leastCapacityStep, this.#step / 2);
    this.#direction = direction;
    const share = this.#share * (1 + direction * this.#step);
    this.#share = Math.min(1, Math.max(loadLimits.leastCapacity, share));
  }

  #directionFor(pressure: number): number {
    if (pressure > loadLimits.highPressure) return -1;
    return pressure < loadLimits.lowPressure && this.#share < 1 ? 1 : 0;
  }
}
