/** Calls a function at a fixed interval between `start` and `stop`. Repeated calls of `start` or `stop` are allowed. */
import type { Clock } from "./clock.ts";

export class Interval {
  readonly #clock: Clock;
  readonly #everyMs: number;
  readonly #look: () => void;
  #stop: (() => void) | undefined;

  constructor(clock: Clock, everyMs: number, look: () => void) {
    this.#clock = clock;
    this.#everyMs = everyMs;
    this.#look = look;
  }

  /** Each run schedules the next one before it calls the function, so that an exception does not end the series. */
  start(): void {
    this.#stop ??= this.#clock.after(this.#everyMs, () => {
      this.#stop = undefined;
      this.start();
      this.#look();
    });
  }

  stop(): void {
    this.#stop?.();
    this.#stop = undefined;
  }
}
