/**
 * Computes each backend's share of the load, from its configured weight, its zone, the time since its return
 * (slow-start.ts), and the load that it can serve (proxy/load).
 */
import type { SlowStart } from "./slow-start.ts";

/** What the configuration or discovery says about a backend. */
export type BackendTraits = {
  /** Load that the backend should get, relative to other backends; default: 1. */
  readonly weight: number;
  /** True if the backend is in the proxy's own zone, or if one of the two zones is not known. */
  readonly isNear: boolean;
};

export type BackendSharesParts = {
  readonly slowStart: SlowStart;
  readonly traitsOf: (backend: string) => BackendTraits;
  /** Returns the fraction of its weight that the backend can serve now: above 0, at most 1. */
  readonly capacityOf: (backend: string) => number;
  /** True if the backend has asked for a pause (429 with Retry-After). */
  readonly isPaused: (backend: string) => boolean;
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
};

export class BackendShares {
  readonly #parts: BackendSharesParts;

  constructor(parts: BackendSharesParts) {
    this.#parts = parts;
  }

  /**
   * Returns the backend's share of the load, above 0. A backend of weight 1 that can serve its full load has the share
   * 1.
   */
  of(backend: string): number {
    const { slowStart, traitsOf, capacityOf } = this.#parts;
    return slowStart.shareOf(backend) * traitsOf(backend).weight * capacityOf(backend);
  }

  /** True if the backend has been ready for long enough to take over clients of other backends. */
  isWarm(backend: string): boolean {
    return this.#parts.slowStart.shareOf(backend) === 1;
  }

  isNear(backend: string): boolean {
    return this.#parts.traitsOf(backend).isNear;
  }

  isPaused(backend: string): boolean {
    return this.#parts.isPaused(backend);
  }

  random(): number {
    return this.#parts.random();
  }
}
