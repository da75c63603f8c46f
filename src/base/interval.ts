/** One look after another, as far apart, from `start` to `stop`; both may be called again. */
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

  /** The next look is arranged before this one is taken: a fault in one is not the end of all. */
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
