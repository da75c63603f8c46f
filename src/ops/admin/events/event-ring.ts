/**
 * Keeps the latest journal entries with ids, so that a client that reconnects can continue after its last entry. Keeps
 * the entries that clients can cause apart from the others, so that they cannot push out incidents and state changes.
 */
import { limits } from "../../../base/limits.ts";
import { eventKinds } from "../../../events/event-kinds.ts";
import type { Entry, Journal } from "../../../events/journal.ts";
import { adminLimits } from "../http/limits.ts";
import type { Times } from "../http/times.ts";
import { fieldsOf } from "./entry-fields.ts";
import { withoutSecrets } from "./log.ts";

/** An entry is formatted only when a client reads it, because most entries are never read. */
export type NumberedEntry = { readonly id: number; readonly entry: Entry; readonly at: number };

export class EventRing {
  /** Start time of the process. Each id begins with it, because a client may send an id of an earlier process. */
  readonly epoch: string;
  readonly #times: Times;
  readonly #entries: NumberedEntry[] = [];
  readonly #ofClients: NumberedEntry[] = [];
  readonly #listeners = new Set<(entry: NumberedEntry) => void>();
  readonly #unsubscribe: () => void;
  #last = 0;
  /** The highest id of a dropped entry. */
  #dropped = 0;

  constructor(journal: Journal, times: Times) {
    this.#times = times;
    this.epoch = times.timeOf(times.now()).replaceAll(/\D/g, "");
    this.#unsubscribe = journal.subscribePaced((entry, at) => this.#take(entry, at));
  }

  stop(): void {
    this.#unsubscribe();
  }

  /** Returns the id that a client sends back as Last-Event-ID, such as "20261122070000000-42". */
  idOf({ id }: NumberedEntry): string {
    return `${this.epoch}-${id}`;
  }

  /**
   * Returns the entries after `id`. `isWhole`: false if some of these entries were dropped, or if `id` comes from
   * another process.
   */
  after(id: string): { readonly entries: readonly NumberedEntry[]; readonly isWhole: boolean } {
    const [epoch = "", number = ""] = id.split("-");
    const last = epoch === this.epoch && /^\d{1,15}$/.test(number) ? Number(number) : -1;
    const entries = [...this.#entries, ...this.#ofClients].filter((one) => one.id > last);
    entries.sort((one, other) => one.id - other.id);
    return { entries, isWhole: last >= this.#dropped && last <= this.#last };
  }

  /** Calls `listener` with each new entry. Returns a function that unsubscribes. */
  listen(listener: (entry: NumberedEntry) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  textOf({ entry, at }: NumberedEntry): string {
    const { kind } = entry;
    const fields = fieldsOf(entry).map(([name, value]) => [name, clean(value)]);
    return JSON.stringify({ at: this.#times.timeOf(at), kind, ...Object.fromEntries(fields) });
  }

  #take(entry: Entry, at: number): void {
    this.#last += 1;
    const numbered = { id: this.#last, entry, at };
    const isOfClients = eventKinds[entry.kind].pace !== undefined;
    const kept = isOfClients ? this.#ofClients : this.#entries;
    kept.push(numbered);
    const most = isOfClients ? adminLimits.clientEventsKept : adminLimits.eventsKept;
    if (kept.length > most) this.#dropped = Math.max(this.#dropped, kept.shift()?.id ?? 0);
    for (const listener of this.#listeners) listener(numbered);
  }
}

function clean(value: unknown): unknown {
  if (typeof value === "string") return withoutSecrets(value.slice(0, limits.apiTextChars));
  return Array.isArray(value) ? value.map(clean) : value;
}
