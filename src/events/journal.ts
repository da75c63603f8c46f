import type { Clock } from "../base/clock.ts";
import { failureFrom, wordsOf } from "../base/failure.ts";
import { Pacer } from "./pacer.ts";
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
  /** Readers of all entries, and those that get the entries that clients cause at a limited rate (pacer.ts). */
  readonly #readers: Reader[];
  readonly #paced: Reader[];
  readonly #pacer: Pacer<Entry>;
  /** The cluster that all entries written to this journal are about; "": none. */
  readonly #cluster: string;

  constructor(clock: Clock, within?: { readonly whole: Journal; readonly cluster: string }) {
    this.#clock = clock;
    const whole = within?.whole;
    this.#readers = whole === undefined ? [] : whole.#readers;
    this.#paced = whole === undefined ? [] : whole.#paced;
    const tell = (entry: Entry, at: number): void => {
      for (const reader of this.#paced) this.#tell(reader, entry, at);
    };
    this.#pacer = whole === undefined ? new Pacer(clock, tell) : whole.#pacer;
    this.#cluster = within?.cluster ?? "";
  }

  /** Returns a journal with the same readers. Entries that are written to it belong to `cluster`. */
  of(cluster: string): Journal {
    return new Journal(this.#clock, { whole: this, cluster });
  }

  /** Passes each entry to `reader`, which may only count or collect: a client can cause any number of entries. */
  subscribe(reader: Reader): () => void {
    return joined(this.#readers, reader);
  }

  /** Passes the entries to `reader`, those that clients cause at a limited rate. */
  subscribePaced(reader: Reader): () => void {
    return joined(this.#paced, reader);
  }

  write(entry: Entry): void {
    const at = this.#clock.now();
    const told = this.#cluster === "" ? entry : { ...entry, cluster: this.#cluster };
    for (const reader of this.#readers) this.#tell(reader, told, at);
    this.#pacer.take(told, at);
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
      if (entry.kind === fault.kind) return;
      for (const other of this.#readers) if (other !== reader) this.#tell(other, fault, at);
      this.#pacer.take(fault, at);
    }
  }
}

function joined(readers: Reader[], reader: Reader): () => void {
  readers.push(reader);
  return () => {
    const at = readers.indexOf(reader);
    if (at >= 0) readers.splice(at, 1);
  };
}

/** Writes a journal entry about an exception that ended one stream and nothing else (D10). */
export function journalFault(journal: Journal, error: unknown): void {
  journal.write({ kind: "internal.error", scope: "stream", message: failureFrom(error, "proxy").message });
}
