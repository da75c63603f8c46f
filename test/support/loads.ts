import type { Loads } from "../../src/proxy/upstream/pick.ts";

/** Loads of backends in one zone, of which none is paused; the first two are compared. */
export function loadsOf(weightOf: (name: string) => number, more: Partial<Loads> = {}): Loads {
  return { weightOf, isPaused: () => false, isNear: () => true, random: () => 0, ...more };
}
