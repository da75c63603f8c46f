/** What a run found: violations, each with the validator that found it, and counts. */
import type { Random } from "../random.ts";
import type { World } from "../world.ts";

/** The validators. Each checks one of the guarantees G1 to G15 for clients, as far as a simulation can. */
export type Validator =
  /** G1: versions never decrease within a stream. */
  | "ordered"
  /** G2: no event arrives twice. */
  | "unique"
  /**
   * G3, G4, G5: a watch receives exactly the matching events after its version, including all events of each version.
   * This also holds if the watch moves.
   */
  | "reliable"
  /** G6: a bookmark is correct, and only clients that requested bookmarks receive one. */
  | "bookmarkable"
  /** G7: a moved watch keeps its client's credentials, its encoding and its remaining time. */
  | "identity"
  /** G8: no client is shown a state that is older than one it has seen. */
  | "time-travel"
  /** G9: the response to a plain request is that of one backend, byte for byte. */
  | "transparent"
  /** G10: a write is sent to a backend only once. */
  | "once"
  /** G11: a truncated response never looks complete, and no event is cut off. */
  | "whole"
  /** G15: 5 s after the last fault everything works. */
  | "progress"
  /**
   * An event that some backend can deliver arrives within seconds, whatever happened to the backend that serves the
   * watch (D6, F5).
   */
  | "fresh"
  /** Nothing ends because of a silence of all backends, and reads are answered within one second after it (D14). */
  | "carried"
  /** A watch ends only for a reason that watch.md §5.1 permits. */
  | "ends"
  /** A watch ends at its client's deadline, even after a move. */
  | "deadline"
  /** No table of the proxy grows in a long run, and neither does its memory. */
  | "growth"
  /** The apiservers never get too many requests or connections at once. Their loads are even again soon after a fault. */
  | "load"
  /** No request, watch, buffered byte or block is left after all clients have gone. */
  | "tidy"
  /** A mistake of an operator stops nothing, and it is named, and its end is told, in time. */
  | "operators"
  /** The data path threw an error. */
  | "thrown";

export type Problem = { readonly validator: Validator; readonly at: number; readonly what: string };

const mostProblems = 20;

export class Findings {
  readonly world: World;
  readonly random: Random;
  readonly problems: Problem[] = [];
  /** Counts by name, for example of relists, ends and moves by their reasons. */
  readonly counts = new Map<string, number>();
  /**
   * Number of late events by their delay in whole seconds. Counts only events that were written after their watch was
   * live.
   */
  readonly delays = new Map<number, number>();
  readonly #trace: ((line: string) => void) | undefined;

  constructor(world: World, random: Random, trace?: (line: string) => void) {
    this.world = world;
    this.random = random;
    this.#trace = trace;
  }

  /** Writes a line to the trace when a seed is replayed. */
  tell(line: () => string): void {
    this.#trace?.(`${(this.world.now() / 1_000).toFixed(3)} ${line()}`);
  }

  wrong(validator: Validator, what: string): void {
    const at = Math.round(this.world.now());
    this.tell(() => `WRONG ${validator}: ${what}`);
    if (this.problems.length < mostProblems) this.problems.push({ validator, at, what });
  }

  count(what: string, by = 1): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + by);
  }
}
