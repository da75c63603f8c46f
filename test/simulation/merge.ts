/**
 * Simulates one watch and its upstream streams without a proxy around them. At any moment a stream may be lost, another
 * one may be requested, or a hedge may open beside it (watch.md §5.2, §5.3, §5.6). In each order of these events the
 * client must receive the history, with each event once and only correct bookmarks.
 */

import { ownOrigin } from "../../src/kube/api-origin.ts";
import type { WatchEvent } from "../../src/watch/codec/event.ts";
import { Progress, Reading } from "../../src/watch/session/session-progress.ts";
import { Random } from "./random.ts";

type Change = { readonly version: number; readonly key: string };

/** The stream of one backend: all changes above `from`, in order. */
type Attempt = { readonly reading: Reading; from: number; at: number; bookmarked: number };

export type Merged = {
  readonly problem: string | undefined;
  readonly events: number;
  readonly attempts: number;
};

export function merge(seed: number): Merged {
  return new Merge(new Random(seed)).play();
}

class Merge {
  readonly #random: Random;
  readonly #repeats: boolean;
  readonly #history: readonly Change[];
  /** The final version. No change is above it. */
  readonly #last: number;
  readonly #start: number;
  readonly #progress: Progress;
  #attempts: Attempt[] = [];
  /** Index of the next change that the client must receive. */
  #next: number;
  #version: number;
  #problem: string | undefined;
  #attemptCount = 0;
  #events = 0;

  constructor(random: Random) {
    this.#random = random;
    this.#repeats = random.chance(0.6);
    this.#history = historyOf(random, this.#repeats);
    this.#last = (this.#history.at(-1)?.version ?? 1) + random.whole(0, 3);
    this.#start = random.whole(1, this.#last);
    this.#version = this.#start;
    this.#next = this.#after(this.#start);
    this.#progress = new Progress({
      start: "exact",
      version: String(this.#start),
      isRepeating: this.#repeats,
      origin: ownOrigin,
      isInjected: false,
    });
  }

  play(): Merged {
    this.#open(this.#start, false);
    // Ends soon after all changes were delivered. The step limit is for a session that never gets that far.
    for (let step = 0; step < 2_000 && this.#problem === undefined; step += 1) {
      if (this.#next === this.#history.length && this.#random.chance(0.1)) break;
      this.#step();
    }
    if (this.#problem === undefined && this.#next < this.#history.length)
      this.#problem = `${this.#history.length - this.#next} events were never told`;
    return { problem: this.#problem, events: this.#events, attempts: this.#attemptCount };
  }

  #step(): void {
    const { length } = this.#attempts;
    const chance = this.#random.next();
    if (chance < 0.05) this.#attempts.splice(this.#random.whole(0, length - 1), 1);
    else if (chance < 0.1 && length < 2) this.#resume();
    else if (chance < 0.2) this.#bookmark(this.#random.pick(this.#attempts));
    else this.#event(this.#random.pick(this.#attempts));
    if (this.#attempts.length === 0) this.#resume();
  }

  #resume(): void {
    const version = this.#progress.resumeVersion;
    if (version === undefined) this.#problem ??= "it cannot go on, although nothing was wrong";
    else this.#open(Number(version), true);
  }

  #open(from: number, isOurs: boolean): void {
    this.#attemptCount += 1;
    this.#attempts.push({
      reading: new Reading(String(from), isOurs, "a"),
      from,
      at: this.#after(from),
      bookmarked: from,
    });
  }

  #after(version: number): number {
    const at = this.#history.findIndex((change) => change.version > version);
    return at < 0 ? this.#history.length : at;
  }

  #event(attempt: Attempt): void {
    const change = this.#history[attempt.at];
    if (change === undefined) return;
    const fate = this.#take(attempt, "MODIFIED", change);
    attempt.at += 1;
    if (fate !== "forward") return;
    this.#events += 1;
    const expected = this.#history[this.#next];
    if (expected !== change)
      this.#problem ??= `told ${change.key}@${change.version}, not ${expected?.key}@${expected?.version}`;
    this.#next += 1;
    this.#version = change.version;
  }

  /** Sends a bookmark for a random version that the stream has passed and of which it has sent all events. */
  #bookmark(attempt: Attempt): void {
    const told = this.#history[attempt.at - 1]?.version ?? 0;
    const coming = this.#history[attempt.at]?.version ?? this.#last + 1;
    const least = Math.max(attempt.bookmarked, told, attempt.from + 1);
    if (least >= coming) return;
    const version = this.#random.whole(least, coming - 1);
    attempt.bookmarked = version;
    const fate = this.#take(attempt, "BOOKMARK", { version, key: "" });
    if (fate !== "forward") return;
    const missed = this.#history[this.#next];
    if (version < this.#version) this.#problem ??= `a bookmark of ${version} after ${this.#version}`;
    if (missed !== undefined && missed.version <= version)
      this.#problem ??= `a bookmark of ${version} before ${missed.key}@${missed.version}`;
    this.#version = version;
  }

  #take(attempt: Attempt, type: WatchEvent["type"], { version, key }: Change): string {
    const none = { endsInitialEvents: false, code: 0, reason: "", oldest: "" };
    const event = { ...none, type, version: String(version), key };
    const fate = this.#progress.take(event, attempt.reading, this.#attempts.length > 1, 0);
    if (fate === "broken" || fate === "refused")
      this.#problem ??= `an honest stream's ${type} of ${version} was ${fate}`;
    return fate;
  }
}

/** Returns versions with gaps, as other resources cause them. With `repeats` some versions have several events. */
function historyOf(random: Random, repeats: boolean): Change[] {
  const history: Change[] = [];
  let version = random.whole(1, 20);
  for (let count = random.size(40); count > 0; count -= 1) {
    version += random.chance(0.6) ? 1 : random.whole(2, 5);
    const size = repeats && random.chance(0.3) ? random.whole(2, 6) : 1;
    for (let at = 0; at < size; at += 1) history.push({ version, key: `default/${version}-${at}` });
  }
  return history;
}
