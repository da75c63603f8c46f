/**
 * Journal entries for migrations and ends of watches: one entry for all with the same reason and backends within a
 * second.
 */
import type { Clock } from "../../base/clock.ts";
import type { Journal } from "../../events/journal.ts";
import { watchLimits } from "../cache/limits.ts";

type Wave = {
  readonly reason: string;
  readonly from: string;
  readonly to: string;
  count: number;
  slowestMs: number;
};

/** A watch that has ended: its resource, and the version from which it could have continued, "" if from none. */
export type Ended = { readonly resource: string; readonly version: string };
type Ends = Ended & { readonly reason: string; readonly from: string; readonly count: number };

export class MigrationLog {
  readonly #clock: Clock;
  readonly #journal: Journal;
  #waves = new Map<string, Wave>();
  #ends = new Map<string, Ends>();
  #isDue = false;

  constructor(clock: Clock, journal: Journal) {
    this.#clock = clock;
    this.#journal = journal;
  }

  /** A watch continues at `to`, `ms` after its stream from `from` was lost or suspected. */
  add(reason: string, from: string, to: string, ms: number): void {
    this.#tellSoon();
    const key = `${reason} ${from} ${to}`;
    const wave = this.#waves.get(key) ?? { reason, from, to, count: 0, slowestMs: 0 };
    wave.count += 1;
    wave.slowestMs = Math.max(wave.slowestMs, ms);
    this.#waves.set(key, wave);
  }

  /** A watch that `from` served last has ended, although its client wanted more of it. */
  end(reason: string, from: string, { resource, version }: Ended): void {
    this.#tellSoon();
    const key = `${reason} ${from}`;
    const wave = this.#ends.get(key) ?? { reason, from, resource, version, count: 0 };
    this.#ends.set(key, { ...wave, resource, version, count: wave.count + 1 });
  }

  #tellSoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    this.#clock.after(watchLimits.waveMs, () => this.#tell());
  }

  #tell(): void {
    this.#isDue = false;
    const [waves, ends] = [this.#waves, this.#ends];
    this.#waves = new Map();
    this.#ends = new Map();
    for (const wave of waves.values())
      this.#journal.write({ kind: "watches.moved", ...wave, slowestMs: Math.round(wave.slowestMs) });
    for (const wave of ends.values()) this.#journal.write({ kind: "watches.ended", ...wave });
  }
}
