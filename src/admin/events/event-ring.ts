/** The latest journal entries with ids, so that a client that reconnects can read on after the last one that it has. */

import { limits } from "../../base/limits.ts";
import type { Entry, Journal } from "../../events/journal.ts";
import { adminLimits } from "../http/limits.ts";
import type { Times } from "../http/times.ts";
import { withoutSecrets } from "./log.ts";

/** Formatted as text on demand: most entries are never read. */
export type Told = { readonly id: number; readonly entry: Entry; readonly at: number };

export class EventRing {
  /** Distinguishes this process's ids from those of an earlier process. */
  readonly epoch: string;
  readonly #times: Times;
  readonly #told: Told[] = [];
  readonly #ears = new Set<(told: Told) => void>();
  readonly #unsubscribe: () => void;
  #last = 0;

  constructor(journal: Journal, times: Times) {
    this.#times = times;
    this.epoch = times.timeOf(times.now()).replaceAll(/\D/g, "");
    this.#unsubscribe = journal.subscribe((entry, at) => this.#take(entry, at));
  }

  stop(): void {
    this.#unsubscribe();
  }

  /** "20261122070000000-42": the form that a client returns as Last-Event-ID. */
  idOf({ id }: Told): string {
    return `${this.epoch}-${id}`;
  }

  /** Returns the entries after `id`; `isWhole` is false if some are no longer kept, or the id is from another process. */
  after(id: string): { readonly told: readonly Told[]; readonly isWhole: boolean } {
    const [epoch = "", number = ""] = id.split("-");
    const last = epoch === this.epoch && /^\d{1,15}$/.test(number) ? Number(number) : -1;
    const told = this.#told.filter((one) => one.id > last);
    const first = this.#told[0]?.id ?? this.#last + 1;
    return { told, isWhole: last >= first - 1 && last <= this.#last };
  }

  /** Returns a function that removes the listener. */
  listen(ear: (told: Told) => void): () => void {
    this.#ears.add(ear);
    return () => this.#ears.delete(ear);
  }

  /** Returns JSON, with the time of day. */
  textOf({ entry: { kind, ...fields }, at }: Told): string {
    return JSON.stringify({ at: this.#times.timeOf(at), kind, ...cleaned(fields) });
  }

  #take(entry: Entry, at: number): void {
    this.#last += 1;
    const told = { id: this.#last, entry, at };
    this.#told.push(told);
    if (this.#told.length > adminLimits.eventsKept) this.#told.shift();
    for (const ear of this.#ears) ear(told);
  }
}

function cleaned(fields: object): object {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, clean(value)]));
}

/** As in the log: clips long values, and removes what looks like a token. */
function clean(value: unknown): unknown {
  if (typeof value === "string") return withoutSecrets(value.slice(0, limits.apiTextChars));
  return Array.isArray(value) ? value.map(clean) : value;
}
