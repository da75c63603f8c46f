/**
 * Computes each backend's share of the load, from its configured weight, its zone, the time since its return, and the
 * load that it can serve (proxy/load).
 *
 * A backend that has just come back has no streams, so "fewest streams first" would send it every client that connects:
 * 5,000 at once after a gateway's restart, to an apiserver whose caches are cold. Its share grows from a small part to
 * the full share within half a minute.
 */
import type { Clock } from "../../base/clock.ts";
import type { BackendState, BackendView } from "../../health/backend.ts";
import { upstreamLimits } from "./limits.ts";

/**
 * After one of these states, a backend that becomes ready again has no clients left. A suspect backend keeps its
 * clients.
 */
const emptied: readonly BackendState[] = ["unknown", "dead", "draining"];

/** Returns the share of its full load that a backend gets once it has been ready for `readyMs`. */
export function shareAfter(readyMs: number): number {
  return Math.min(1, Math.max(upstreamLimits.slowStartLeast, readyMs / upstreamLimits.slowStartMs));
}

/** What the configuration or discovery says about a backend. */
export type BackendTraits = {
  /** Load that the backend should get, relative to other backends; default: 1. */
  readonly weight: number;
  /** True if the backend is in the proxy's own zone, or if one of the two zones is not known. */
  readonly isNear: boolean;
};

/** The traits of a backend about which nothing is stated. */
export const alike: BackendTraits = { weight: 1, isNear: true };

export type BackendSharesParts = {
  readonly clock: Clock;
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
  /**
   * Clock reading at which each backend became ready again after it had lost its clients; undefined: it is not ready
   * yet.
   */
  readonly #returnedAt = new Map<string, number | undefined>();

  constructor(parts: BackendSharesParts) {
    this.#parts = parts;
  }

  /** Records a health state. Returns true if the backend has just become ready again and starts with a small share. */
  judged({ name, state }: Pick<BackendView, "name" | "state">): boolean {
    if (emptied.includes(state)) this.#returnedAt.set(name, undefined);
    const hasReturned = state === "ready" && this.#returnedAt.get(name) === undefined;
    if (hasReturned) this.#returnedAt.set(name, this.#parts.clock.now());
    return hasReturned;
  }

  reconcile(names: readonly string[]): void {
    for (const name of this.#returnedAt.keys()) if (!names.includes(name)) this.#returnedAt.delete(name);
  }

  /**
   * Returns the backend's share of the load, above 0. A backend of weight 1 that can serve its full load has the share
   * 1.
   */
  of(backend: string): number {
    const { traitsOf, capacityOf } = this.#parts;
    return this.#returnedShareOf(backend) * traitsOf(backend).weight * capacityOf(backend);
  }

  /** True if the backend has been ready for long enough to take over clients of other backends. */
  isWarm(backend: string): boolean {
    return this.#returnedShareOf(backend) === 1;
  }

  #returnedShareOf(backend: string): number {
    const returnedAt = this.#returnedAt.get(backend);
    return shareAfter(returnedAt === undefined ? 0 : this.#parts.clock.now() - returnedAt);
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
