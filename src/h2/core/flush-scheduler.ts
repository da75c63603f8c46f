/** Flushes all writers with output once per turn of the event loop, after the turn's input has been read. */
import type { Clock } from "../../base/clock.ts";

type Flushable = { flush(): void };

export class FlushScheduler {
  readonly #clock: Clock;
  #dirty: Flushable[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Queues a writer for the flush at the end of this turn. A writer must not call this twice in a turn. */
  mark(session: Flushable): void {
    if (this.#dirty.length === 0) this.#clock.soon(() => this.#flush());
    this.#dirty.push(session);
  }

  /** Flushes all queued writers. After an exception the remaining ones are flushed in the next turn. */
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
