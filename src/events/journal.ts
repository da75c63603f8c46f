import type { Clock } from "../base/clock.ts";
import { wordsOf } from "../base/failure.ts";
import type { ProxyEvent } from "./proxy-event.ts";

/** One event and its cluster. The cluster is undefined if there is only one, or if the event belongs to none. */
export type Entry = ProxyEvent & { readonly cluster?: string };

/** The event of one kind. */
export type EntryOf<K extends Entry["kind"]> = Extract<Entry, { readonly kind: K }>;

export type Reader = (entry: Entry, at: number) => void;

/** Where the data path records what it did. It does not depend on its readers. */
export class Journal {
  readonly #clock: Clock;
  readonly #readers: Reader[];
  /** The cluster of all events written here; "" if there is only one, or for none. */
  readonly #cluster: string;

  constructor(clock: Clock, within: { readonly readers: Reader[]; readonly cluster: string } = noCluster()) {
    this.#clock = clock;
    this.#readers = within.readers;
    this.#cluster = within.cluster;
  }

  /** Returns the same journal for events of this cluster. */
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

  /** A reader that throws loses only its own copy: other readers and the writer are not affected. */
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

function noCluster(): { readonly readers: Reader[]; readonly cluster: string } {
  return { readers: [], cluster: "" };
}
