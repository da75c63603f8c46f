/**
 * Journals moves and ends of watches. Those that occur within one second, for the same reason and at the same
 * backends, share one entry.
 */
import type { Clock } from "../../base/clock.ts";
import type { Journal } from "../../events/journal.ts";
import { watchLimits } from "../limits.ts";

type Moves = {
  readonly reason: string;
  readonly from: string;
  readonly to: string;
  count: number;
  slowestMs: number;
};

/** A watch that has ended. `version`: the version from which another backend could have continued it; "": none. */
export type Ended = { readonly resource: string; readonly version: string };
type Ends = Ended & { readonly reason: string; readonly from: string; readonly count: number };

export class MigrationLog {
  readonly #clock: Clock;
  readonly #journal: Journal;
  #moves = new Map<string, Moves>();
  #ends = new Map<string, Ends>();
  #isDue = false;

  constructor(clock: Clock, journal: Journal) {
    this.#clock = clock;
    this.#journal = journal;
  }

  /** Counts a move. `ms`: time since the stream on the backend `from` was lost or became suspect. */
  add(reason: string, from: string, to: string, ms: number): void {
    this.#writeSoon();
    const key = `${reason} ${from} ${to}`;
    const group = this.#moves.get(key) ?? { reason, from, to, count: 0, slowestMs: 0 };
    group.count += 1;
    group.slowestMs = Math.max(group.slowestMs, ms);
    this.#moves.set(key, group);
  }

  /** Counts a watch that ended although its client wanted more events. `from`: the watch's last backend. */
  end(reason: string, from: string, { resource, version }: Ended): void {
    this.#writeSoon();
    const key = `${reason} ${from}`;
    const group = this.#ends.get(key) ?? { reason, from, resource, version, count: 0 };
    this.#ends.set(key, { ...group, resource, version, count: group.count + 1 });
  }

  #writeSoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    this.#clock.after(watchLimits.logMs, () => this.#write());
  }

  #write(): void {
    this.#isDue = false;
    const [moves, ends] = [this.#moves, this.#ends];
    this.#moves = new Map();
    this.#ends = new Map();
    for (const group of moves.values())
      this.#journal.write({ kind: "watches.moved", ...group, slowestMs: Math.round(group.slowestMs) });
    for (const group of ends.values()) this.#journal.write({ kind: "watches.ended", ...group });
  }
}
