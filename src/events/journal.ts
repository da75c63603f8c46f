import type { Clock } from "../base/clock.ts";
import { failureFrom, wordsOf } from "../base/failure.ts";
import type { ProxyEvent } from "./proxy-event.ts";

/**
 * A journal entry. `cluster`: the cluster that the entry is about; undefined if it is about the whole process, or if
 * there is only one cluster.
 */
export type Entry = ProxyEvent & { readonly cluster?: string };

export type EntryOf<K extends Entry["kind"]> = Extract<Entry, { readonly kind: K }>;

export type Reader = (entry: Entry, at: number) => void;

/** The journal of everything that happens in the process. The code that writes entries does not know the readers. */
export class Journal {
  readonly #clock: Clock;
  readonly #readers: Reader[];
  /** The cluster that all entries written to this journal are about; "": none. */
  readonly #cluster: string;

  constructor(
    clock: Clock,
    within: { readonly readers: Reader[]; readonly cluster: string } = { readers: [], cluster: "" },
  ) {
    this.#clock = clock;
    this.#readers = within.readers;
    this.#cluster = within.cluster;
  }

  /** Returns a journal with the same readers. Entries that are written to it belong to `cluster`. */
  of(cluster: string): Journal {
    return new Journal(this.#clock, { readers: this.#readers, cluster });
  }

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

  /**
   * Passes an entry to one reader. If this reader throws, the other readers get "internal.error", and the caller of
   * `write` gets no exception.
   */
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

/** Writes a journal entry about an exception that ended one stream and nothing else (D10). */
export function journalFault(journal: Journal, error: unknown): void {
  journal.write({ kind: "internal.error", scope: "stream", message: failureFrom(error, "proxy").message });
}
