/** A wait that its owner can end early; one at a time. */
import type { Clock } from "../../base/clock.ts";

export class Pause {
  readonly #clock: Clock;
  #wake = (): void => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves after `ms`, or when woken. */
  of(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(ms, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }

  /** Ends the present wait, if there is one. */
  wake(): void {
    this.#wake();
  }
}
