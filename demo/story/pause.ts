/** A pause that `wake` can end early. Only one pause may run at a time. */
import type { Clock } from "../../src/base/clock.ts";

export class Pause {
  readonly #clock: Clock;
  #wake = (): void => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Starts a pause. Resolves after `ms` milliseconds, or earlier if `wake` is called. */
  of(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(ms, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }

  wake(): void {
    this.#wake();
  }
}
