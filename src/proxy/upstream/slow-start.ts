/**
 * Limits the share of a backend that has just come back. It is empty, and "fewest streams first" would send it every
 * client that connects: 5,000 at once after a gateway's restart, to an apiserver whose caches are still cold. It counts
 * as a part of a backend at first, and as a whole one half a minute later.
 */
import type { Clock } from "../../base/clock.ts";
import type { BackendState, BackendView } from "../../health/backend.ts";
import { upstreamLimits } from "./limits.ts";

/** After one of these states a backend has no clients left, or never had any; a suspicion alone costs it none. */
const emptied: readonly BackendState[] = ["unknown", "dead", "draining"];

/** The share of a whole backend that one counts as after `readyMs` in state ready. Pure. */
export function shareAfter(readyMs: number): number {
  return Math.min(1, Math.max(upstreamLimits.slowStartLeast, readyMs / upstreamLimits.slowStartMs));
}

export class SlowStart {
  readonly #clock: Clock;
  /** When each became ready after it had been empty; undefined: it has not been ready since. */
  readonly #returnedAt = new Map<string, number | undefined>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes every verdict that differs from the previous one. True if the backend has returned. */
  judged({ name, state }: Pick<BackendView, "name" | "state">): boolean {
    if (emptied.includes(state)) this.#returnedAt.set(name, undefined);
    const hasReturned = state === "ready" && this.#returnedAt.get(name) === undefined;
    if (hasReturned) this.#returnedAt.set(name, this.#clock.now());
    return hasReturned;
  }

  /** Forgets those that are no longer configured. */
  reconcile(names: readonly string[]): void {
    for (const name of this.#returnedAt.keys()) if (!names.includes(name)) this.#returnedAt.delete(name);
  }

  /** From `upstreamLimits.slowStartLeast` to 1. */
  shareOf(name: string): number {
    const returnedAt = this.#returnedAt.get(name);
    return shareAfter(returnedAt === undefined ? 0 : this.#clock.now() - returnedAt);
  }
}
