import type { Clock } from "../base/clock.ts";
import { failureFrom, wordsOf } from "../base/failure.ts";
import type { ProxyEvent } from "./proxy-event.ts";

/** An event and its cluster; undefined: there is only one cluster, or the event belongs to none. */
export type Entry = ProxyEvent & { readonly cluster?: string };

export type EntryOf<K extends Entry["kind"]> = Extract<Entry, { readonly kind: K }>;

export type Reader = (entry: Entry, at: number) => void;

/** The record of what happened. The data path writes to it and does not know who reads it. */
export class Journal {
  readonly #clock: Clock;
  readonly #readers: Reader[];
  /** The cluster of all events written here; "": there is only one cluster, or the events belong to none. */
  readonly #cluster: string;

  constructor(
    clock: Clock,
    within: { readonly readers: Reader[]; readonly cluster: string } = { readers: [], cluster: "" },
  ) {
    this.#clock = clock;
    this.#readers = within.readers;
    this.#cluster = within.cluster;
  }

  /** Returns a journal with the same readers. The events written there belong to `cluster`. */
  of(cluster: string): Journal {
    return new Journal(this.#clock, { readers: this.#readers, cluster });
  }

  /** Returns a function that unsubscribes. */
  subscribe(reader: Reader): () => void {
    this.#readers.push(reader);
    return () => {
      const at = this.#readers.indexOf(reader);
      if (at >= 0) this.#readers.splice(at, 1);
    };
  }

  write(entry: Entry): void {
    const at = this.#clock.now();
    const told = this.#cluster === "" ? entry : { ...entry, cluster: this.#cluster };
    for (const reader of this.#readers) this.#tell(reader, told, at);
  }

  /** Calls one reader. If it throws, the other readers get "internal.error", and the writer is not affected. */
  #tell(reader: Reader, entry: Entry, at: number): void {
    try {
      reader(entry, at);
    } catch (error) {
      const message = `${entry.kind}: ${wordsOf(error)}`;
      const fault: Entry = { kind: "internal.error", scope: "reader", message };
      for (const other of this.#readers)
        if (other !== reader && entry.kind !== fault.kind) this.#tell(other, fault, at);
    }
  }
}

/** Journals an error that ended one stream and nothing else (D10). */
export function journalFault(journal: Journal, error: unknown): void {
  journal.write({ kind: "internal.error", scope: "stream", message: failureFrom(error, "proxy").message });
}
