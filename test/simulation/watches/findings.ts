/** What a run found wrong, by the validator that saw it, and what it counted. */
import type { Random } from "../random.ts";
import type { World } from "../world.ts";

/** The guarantees G1 to G15 that clients are given, as far as a simulation can judge them, by name. */
export type Validator =
  /** G1: versions do not go back within a stream. */
  | "ordered"
  /** G2: nothing twice. */
  | "unique"
  /** G3, G4, G5: exactly the matching events, from the requested version on, all events of a version, across every move. */
  | "reliable"
  /** G6: a bookmark is correct, and only clients that asked for bookmarks get one. */
  | "bookmarkable"
  /** G7: a moved watch is asked for by the same client, in the same form, for what is left of its time. */
  | "identity"
  /** G8: nothing older than what this client has seen. */
  | "time-travel"
  /** G9: a plain answer is its backend's, byte for byte. */
  | "transparent"
  /** G10: a write is sent once. */
  | "once"
  /** G11: no truncation passes as success, and no event is half. */
  | "whole"
  /** G15: once the faults are over all is well within 5 s. */
  | "progress"
  /** What a backend can tell is told within seconds, whatever befell the one that a watch was on (D6, F5). */
  | "fresh"
  /** What lives is carried over a silence of all backends, and reads come within a second after it (D14). */
  | "carried"
  /** No end of a watch but those that watch.md §5.1 demands. */
  | "ends"
  /** A client's own deadline holds, whatever its watch was moved to. */
  | "deadline"
  /** Nothing is left behind when all clients have gone. */
  | "tidy"
  /** The path threw. */
  | "thrown";

export type Problem = { readonly validator: Validator; readonly at: number; readonly what: string };

const mostProblems = 20;

export class Findings {
  readonly world: World;
  readonly random: Random;
  readonly problems: Problem[] = [];
  /** Counts by name: relists, ends and moves with their reasons. */
  readonly counts = new Map<string, number>();
  /** Events that came late to watches which were there when they were written: how many, by whole seconds. */
  readonly delays = new Map<number, number>();
  readonly #trace: ((line: string) => void) | undefined;

  constructor(world: World, random: Random, trace?: (line: string) => void) {
    this.world = world;
    this.random = random;
    this.#trace = trace;
  }

  /** Traces what happens, when a seed is replayed. */
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
