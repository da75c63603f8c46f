/**
 * Limits the share of a backend that has just come back. It has no streams, so "fewest streams first" would send it
 * every client that connects: 5,000 at once after a gateway's restart, to an apiserver whose caches are cold. Its share
 * grows from a small part to the full share within half a minute.
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

export class SlowStart {
  readonly #clock: Clock;
  /**
   * Clock reading at which each backend became ready again after it had lost its clients; undefined: it is not ready
   * yet.
   */
  readonly #returnedAt = new Map<string, number | undefined>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Records a health state. Returns true if the backend has just become ready again and starts with a small share. */
  judged({ name, state }: Pick<BackendView, "name" | "state">): boolean {
    if (emptied.includes(state)) this.#returnedAt.set(name, undefined);
    const hasReturned = state === "ready" && this.#returnedAt.get(name) === undefined;
    if (hasReturned) this.#returnedAt.set(name, this.#clock.now());
    return hasReturned;
  }

  reconcile(names: readonly string[]): void {
    for (const name of this.#returnedAt.keys()) if (!names.includes(name)) this.#returnedAt.delete(name);
  }

  shareOf(name: string): number {
    const returnedAt = this.#returnedAt.get(name);
    return shareAfter(returnedAt === undefined ? 0 : this.#clock.now() - returnedAt);
  }
}
