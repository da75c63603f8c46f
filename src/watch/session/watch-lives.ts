/**
 * The latest state changes of all watches, for the history of one watch in the admin API. They are in a ring buffer
 * that all watches share: each new change overwrites the oldest one.
 */
import type { Clock } from "../../base/clock.ts";
import { BackendCounts } from "../../upstream/pool/backend-counts.ts";
import { watchLimits } from "../limits.ts";
import { type WatchInput, type WatchState, watchStates } from "./watch-state.ts";

/**
 * A change of a watch's state. `backend`: that of the first stream, or of the lost stream. `version`: the newest
 * version that the client had received.
 */
export type LifeEntry = {
  readonly at: number;
  readonly state: WatchState;
  readonly backend: string;
  readonly version: string;
};

/**
 * How a hedge ends. first: the watch continues on its first stream. hedge: the watch continues on the second stream.
 * neither: the watch ends, or loses both streams.
 */
export const hedgeOutcomes = ["first", "hedge", "neither"] as const;
export type HedgeOutcome = (typeof hedgeOutcomes)[number];

/** Returns how an open hedge ends when `input` changes the watch's state to `state`; undefined: it stays open. */
function hedgeOutcome(input: WatchInput, state: WatchState): HedgeOutcome | undefined {
  if (input === "promote") return "hedge";
  if (input === "drop" || input === "compare") return state === "parked" ? "neither" : "first";
  return input === "end" || input === "cancel" ? "neither" : undefined;
}

export class WatchLives {
  /** The ended hedges of all watches, by the backend of the first stream. */
  readonly hedges = new BackendCounts<HedgeOutcome>();
  /** For each entry, the sequence number of the watch that has changed. */
  readonly #watches = new Uint32Array(watchLimits.lifeEntries);
  readonly #times = new Float64Array(watchLimits.lifeEntries);
  readonly #states = new Uint8Array(watchLimits.lifeEntries);
  readonly #places: { readonly backend: string; readonly version: string }[] = [];
  #next = 0;
  #count = 0;

  begin(clock: Clock): WatchLife {
    this.#count += 1;
    return new WatchLife(this, clock, this.#count);
  }

  add(watch: number, { at, state, backend, version }: LifeEntry): void {
    const index = this.#next % watchLimits.lifeEntries;
    this.#next += 1;
    this.#watches[index] = watch;
    this.#times[index] = at;
    this.#states[index] = watchStates.indexOf(state);
    this.#places[index] = { backend, version };
  }

  /** Returns the kept changes of one watch, oldest first. */
  of(watch: number): readonly LifeEntry[] {
    const found: LifeEntry[] = [];
    for (let at = Math.max(0, this.#next - watchLimits.lifeEntries); at < this.#next; at += 1) {
      const index = at % watchLimits.lifeEntries;
      const place = this.#places[index];
      if (this.#watches[index] !== watch || place === undefined) continue;
      const state = watchStates[this.#states[index] ?? 0] ?? "streaming";
      found.push({ at: this.#times[index] ?? 0, state, ...place });
    }
    return found;
  }
}

/** The state changes of one watch. */
export class WatchLife {
  readonly #lives: WatchLives;
  readonly #clock: Clock;
  /** The sequence number of the watch in `WatchLives`. */
  readonly #number: number;
  /** The backend of the first stream when a hedge was opened; "": no hedge is open. */
  #hedgedAt = "";

  constructor(lives: WatchLives, clock: Clock, number: number) {
    this.#lives = lives;
    this.#clock = clock;
    this.#number = number;
  }

  /**
   * Records that `input` has changed the watch's state to `state`. The change to "ended" is not kept, because the admin
   * API lists only open watches.
   */
  changed(input: WatchInput, state: WatchState, backend: string, version: string): void {
    this.#countHedge(input, state, backend);
    if (state !== "ended") this.#lives.add(this.#number, { at: this.#clock.now(), state, backend, version });
  }

  #countHedge(input: WatchInput, state: WatchState, backend: string): void {
    if (input === "hedge") this.#hedgedAt = backend;
    const outcome = this.#hedgedAt === "" ? undefined : hedgeOutcome(input, state);
    if (outcome === undefined) return;
    // Creates the counters of all outcomes at once, because a PromQL rate misses the first increment of a counter that
    // appears with the value 1.
    for (const one of hedgeOutcomes) this.#lives.hedges.of(this.#hedgedAt, one).add(one === outcome ? 1 : 0);
    this.#hedgedAt = "";
  }

  /**
   * The latest changes of this watch, oldest first. Changes that later changes of other watches have overwritten are
   * missing.
   */
  get entries(): readonly LifeEntry[] {
    return this.#lives.of(this.#number);
  }
}
