/** A wait that its owner can cut short: one at a time. */
import type { Clock } from "../../base/clock.ts";

export class Pause {
  readonly #clock: Clock;
  #wake = (): void => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves after `ms`, or when it is woken. */
  of(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(ms, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }

  /** Who waits goes on at once; nobody may. */
  wake(): void {
    this.#wake();
  }
}
