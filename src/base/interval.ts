/** Calls a function at a fixed interval between `start` and `stop`. Repeated calls of `start` or `stop` are allowed. */
import type { Clock } from "./clock.ts";

export class Interval {
  readonly #clock: Clock;
  readonly #everyMs: number;
  readonly #look: (lateMs: number) => void;
  #stop: (() => void) | undefined;

  /** `look` gets the number of ms by which it is called late, for example after a stall of the event loop. */
  constructor(clock: Clock, everyMs: number, look: (lateMs: number) => void) {
    this.#clock = clock;
    this.#everyMs = everyMs;
    this.#look = look;
  }

  /** Each run schedules the next one before it calls the function, so that an exception does not end the series. */
  start(): void {
    if (this.#stop !== undefined) return;
    const dueAt = this.#clock.now() + this.#everyMs;
    this.#stop = this.#clock.after(this.#everyMs, () => {
      const lateMs = this.#clock.now() - dueAt;
      this.#stop = undefined;
      this.start();
      this.#look(lateMs);
    });
  }

  stop(): void {
    this.#stop?.();
    this.#stop = undefined;
  }
}
