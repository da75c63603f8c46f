/** Flushes all writers that have output once per turn of the event loop, after the turn's input was read. */
import type { Clock } from "../../base/clock.ts";

type Flushable = { flush(): void };

export class FlushScheduler {
  readonly #clock: Clock;
  #dirty: Flushable[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  mark(session: Flushable): void {
    if (this.#dirty.length === 0) this.#clock.soon(() => this.#flush());
    this.#dirty.push(session);
  }

  /** If a writer throws, the writers after it are flushed in the next turn. */
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
