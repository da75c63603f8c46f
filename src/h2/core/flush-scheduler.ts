/**
 * Collects the writers that have output in this event loop turn and flushes all of them when the turn's input has been
 * read.
 */
import type { Clock } from "../../base/clock.ts";

export type Flushable = { flush(): void };

export class FlushScheduler {
  readonly #clock: Clock;
  #dirty: Flushable[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Each writer with output calls this once per turn; the writer tracks whether it has called. */
  mark(session: Flushable): void {
    if (this.#dirty.length === 0) this.#clock.soon(() => this.#flush());
    this.#dirty.push(session);
  }

  /**
   * A writer that marks itself during a flush is flushed in the next turn. An exception in one flush does not affect
   * the others.
   */
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
