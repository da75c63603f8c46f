import type { Loads } from "../../src/upstream/pool/pick.ts";

/**
 * Returns the facts from which a backend is picked: all backends are in the client's zone, none is paused, and `random`
 * always picks the first two for the comparison.
 */
export function loadsOf(weightOf: (name: string) => number, more: Partial<Loads> = {}): Loads {
  return { weightOf, isPaused: () => false, isNear: () => true, random: () => 0, ...more };
}
