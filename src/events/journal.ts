import type { Clock } from "../base/clock.ts";
import { wordsOf } from "../base/failure.ts";
import type { ProxyEvent } from "./proxy-event.ts";

/** One thing that happened, and in which cluster: left out while there is but one, and of what belongs to none. */
export type Entry = ProxyEvent & { readonly cluster?: string };

export type Reader = (entry: Entry, at: number) => void;

/** Where the data path says what it did. It knows no reader. */
export class Journal {
  readonly #clock: Clock;
  readonly #readers: Reader[];
  /** In which all that is told here happens; "" for the only one, and for none. */
  readonly #cluster: string;

  constructor(clock: Clock, within: { readonly readers: Reader[]; readonly cluster: string } = noCluster()) {
    this.#clock = clock;
    this.#readers = within.readers;
    this.#cluster = within.cluster;
  }

  /** The same journal, as it is written in this cluster. */
  of(cluster: string): Journal {
    return new Journal(this.#clock, { readers: this.#readers, cluster });
  }

  /** Returns its undoing. */
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

  /** A reader that throws costs what it would have read: neither the others, nor whoever had something to tell. */
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
