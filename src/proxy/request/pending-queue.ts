/**
 * Requests that no backend can take now. They wait, unsent, for any verdict that changes that, and are sent in the order
 * in which they came. Their connections are opened no faster than each backend's budget of dials allows.
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { inSlices } from "../../base/slices.ts";

type Waiting = { readonly place: () => void; readonly stop: () => void };

export class PendingQueue {
  readonly #clock: Clock;
  readonly #waiting = new Set<Waiting>();

  /** `clock` stands still while the proxy's own event loop does: a backend may have come back meanwhile (F11). */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** How long a request that waits from now on may wait: a reading of the given clock. */
  get until(): number {
    return this.#clock.now() + limits.holdMs;
  }

  /**
   * Calls `place` when a backend can be asked, or `refuse` if none can until `until`. Returns the function that cancels
   * the wait; undefined if it cannot wait because its time is over, or too many requests wait.
   */
  wait(until: number, place: () => void, refuse: () => void): (() => void) | undefined {
    const leftMs = until - this.#clock.now();
    if (leftMs <= 0 || this.#waiting.size >= limits.waitingExchanges) return undefined;
    const leave = (): void => {
      stop();
      this.#waiting.delete(held);
    };
    const stop = this.#clock.after(leftMs, () => {
      leave();
      refuse();
    });
    const held: Waiting = { place, stop };
    this.#waiting.add(held);
    return leave;
  }

  /** Resolves with true when a backend may be asked again, with false at `until`. */
  isBack(until: number): Promise<boolean> {
    return new Promise((resolve) => {
      const leave = this.wait(
        until,
        () => resolve(true),
        () => resolve(false),
      );
      if (leave === undefined) resolve(false);
    });
  }

  /**
   * A backend may be asked again. Runs in a later tick, because verdicts are reported in the middle of other work, and in
   * slices: after a restart 10,000 requests may be waiting. A request that waits again is for the next release.
   */
  release(): void {
    if (this.#waiting.size === 0) return;
    this.#clock.soon(() => {
      inSlices(this.#clock, Array.from(this.#waiting), (held) => {
        if (!this.#waiting.delete(held)) return;
        held.stop();
        held.place();
      });
    });
  }
}
