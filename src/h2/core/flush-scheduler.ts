/**
 * Flushes every writer that has output, once per turn of the event loop, after the turn's input was read. Flushes
 * earlier, after the input of the present socket, when too much output waits (output-buffers.ts).
 */
import type { Clock } from "../../base/clock.ts";
import { mostUnwrittenBytes, unwrittenBytes } from "./output-buffers.ts";

type Flushable = { flush(): void };

export class FlushScheduler {
  readonly #clock: Clock;
  #dirty: Flushable[] = [];
  #last: Flushable | undefined;
  #isScheduled = false;
  #isEarly = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  mark(session: Flushable): void {
    this.#schedule();
    this.#dirty.push(session);
    if (this.#isEarly || unwrittenBytes() < mostUnwrittenBytes) return;
    this.#isEarly = true;
    // A microtask, because the session that writes now is still processing its input.
    queueMicrotask(() => {
      this.#isEarly = false;
      this.#flushAll();
    });
  }

  /** Flushes `last` at the end of this turn of the event loop, after all writers. */
  markLast(last: Flushable): void {
    this.#schedule();
    this.#last = last;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#clock.soon(() => this.#endTurn());
  }

  #endTurn(): void {
    this.#isScheduled = false;
    const last = this.#last;
    this.#last = undefined;
    try {
      this.#flushAll();
    } finally {
      last?.flush();
    }
  }

  /** If a writer throws, the writers after it are flushed in the next turn. */
  #flushAll(): void {
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
