/** Who has something to write in this loop turn; all are flushed together when the turn's input has been read. */
import type { Clock } from "../../base/clock.ts";

export type Flushable = { flush(): void };

export class FlushScheduler {
  readonly #clock: Clock;
  #dirty: Flushable[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Called once per turn by each writer that has something: the writer knows whether it called already. */
  mark(session: Flushable): void {
    if (this.#dirty.length === 0) this.#clock.soon(() => this.#flush());
    this.#dirty.push(session);
  }

  /** What becomes dirty while flushing is flushed in a turn of its own. A flush that throws takes no other with it. */
  #flush(): void {
    const dirty = this.#dirty;
    this.#dirty = [];
    let done = 0;
    try {
      for (const session of dirty) {
        done += 1;
        session.flush();
      }
    } finally {
      for (const session of dirty.slice(done)) this.mark(session);
    }
  }
}
