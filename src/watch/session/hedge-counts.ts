/** Counts the hedges of watches by the silent backend, and by the stream with which the watch continued. */

import type { WatchInput, WatchState } from "./watch-state.ts";

/**
 * How a hedge ends. first: the watch continues on its first stream. hedge: the watch continues on the second stream.
 * neither: the watch ends, or loses both streams.
 */
const hedgeOutcomes = ["first", "hedge", "neither"] as const;
export type HedgeOutcome = (typeof hedgeOutcomes)[number];

/** Returns how an open hedge ends when `input` changes the watch's state to `state`; undefined: it stays open. */
export function hedgeOutcome(input: WatchInput, state: WatchState): HedgeOutcome | undefined {
  if (input === "promote") return "hedge";
  if (input === "drop" || input === "compare") return state === "parked" ? "neither" : "first";
  return input === "end" || input === "cancel" ? "neither" : undefined;
}

type Counts = Record<HedgeOutcome, number>;

export class HedgeCounts {
  /** Key: the backend of the first stream. The removed backends are summed under "other". */
  readonly counts = new Map<string, Counts>();

  add(backend: string, outcome: HedgeOutcome): void {
    this.#of(backend)[outcome] += 1;
  }

  /**
   * Adds the counts of removed backends to "other". Otherwise the counts would grow without limit, because backends
   * with new names may be added again and again.
   */
  reconcile(backends: readonly string[]): void {
    for (const [backend, counts] of this.counts) {
      if (backend === "other" || backends.includes(backend)) continue;
      this.counts.delete(backend);
      for (const outcome of hedgeOutcomes) this.#of("other")[outcome] += counts[outcome];
    }
  }

  #of(backend: string): Counts {
    const known = this.counts.get(backend);
    if (known !== undefined) return known;
    const counts = { first: 0, hedge: 0, neither: 0 };
    this.counts.set(backend, counts);
    return counts;
  }
}
