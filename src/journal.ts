import type { Clock } from "./clock.ts";

/** One thing that happened. Names are `subject.past-tense`; the list is closed and grows with the product. */
export type Entry =
  | { readonly kind: "listener.opened"; readonly listener: string; readonly address: string }
  | {
      readonly kind: "backend.changed";
      readonly backend: string;
      readonly from: string;
      readonly to: string;
      readonly reason: string;
    }
  | { readonly kind: "lane.opened"; readonly backend: string; readonly lane: string }
  | { readonly kind: "lane.closed"; readonly backend: string; readonly lane: string; readonly reason: string }
  | { readonly kind: "session.refused"; readonly client: string; readonly reason: string }
  | { readonly kind: "request.refused"; readonly client: string; readonly reason: string }
  | {
      readonly kind: "exchange.failed";
      readonly code: string;
      readonly origin: string;
      readonly message: string;
      readonly auditId: string;
    }
  | {
      readonly kind: "tunnel.opened";
      readonly client: string;
      readonly backend: string;
      readonly auditId: string;
    }
  | {
      readonly kind: "tunnel.ended";
      readonly client: string;
      readonly backend: string;
      readonly auditId: string;
      readonly reason: string;
    }
  | {
      readonly kind: "config.reloaded";
      readonly file: string;
      /** Changed parts that hold from the next start only. */
      readonly waiting: readonly string[];
    }
  | { readonly kind: "config.refused"; readonly file: string; readonly problems: readonly string[] }
  | { readonly kind: "certificate.loaded"; readonly name: string; readonly notAfter: string }
  | { readonly kind: "certificate.refused"; readonly name: string; readonly problem: string }
  | {
      readonly kind: "fault.contained";
      readonly ring: "stream" | "session" | "process";
      readonly message: string;
    }
  /** "" when all of its checks are good. */
  | { readonly kind: "probe.changed"; readonly probe: string; readonly complaint: string }
  | { readonly kind: "drain.started" }
  | { readonly kind: "drain.ended"; readonly cut: number };

export type Reader = (entry: Entry, at: number) => void;

/** Where the data path says what it did. It knows no reader. */
export class Journal {
  readonly #clock: Clock;
  readonly #readers: Reader[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
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
    for (const reader of this.#readers) reader(entry, at);
  }
}
