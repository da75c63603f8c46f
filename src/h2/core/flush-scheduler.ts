/** Flushes every writer that has output, once per turn of the event loop, after the turn's input was read. */
import type { Clock } from "../../base/clock.ts";

type Flushable = { flush(): void };

export class FlushScheduler {
  readonly #clock: Clock;
  #dirty: Flushable[] = [];
  #last: Flushable | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  mark(session: Flushable): void {
    this.#schedule();
    this.#dirty.push(session);
  }

  /** Flushes `last` at the end of this turn of the event loop, after all writers. */
  markLast(last: Flushable): void {
    this.#schedule();
    this.#last = last;
  }

  #schedule(): void {
    if (this.#dirty.length === 0 && this.#last === undefined) this.#clock.soon(() => this.#flush());
  }

  /** If a writer throws, the writers after it are flushed in the next turn. */
  #flush(): void {
    const dirty = this.#dirty;
    const last = this.#last;
    this.#dirty = [];
    this.#last = undefined;
    let done = 0;
    try {
      for (const session of dirty) {
        done += 1;
        session.flush();
      }
    } finally {
      last?.flush();
      for (const session of dirty.slice(done)) this.mark(session);
    }
  }
}
