/**
 * Requests that no backend can take just now. They wait, unsent, for any verdict that changes that, and are sent in the
 * order in which they came; their upstream connections are opened no faster than each backend's budget of dials allows.
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { inSlices } from "../../base/slices.ts";

type Waiting = { readonly place: () => void; readonly stop: () => void };

export class PendingQueue {
  readonly #clock: Clock;
  readonly #waiting = new Set<Waiting>();

  /** `clock` stands still while our own loop does: a backend may have come back meanwhile (F11). */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Until when a request that is held from now on waits: a reading of the clock that was given. */
  get until(): number {
    return this.#clock.now() + limits.holdMs;
  }

  /**
   * Runs `place` when a backend is there, or `refuse` when none is until `until`. Returns its undoing, or undefined
   * when it cannot wait: its time is over, or too many do already.
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
   * A backend may be asked again. In a later turn, since verdicts are told of in the middle of others' work, and a slice at a
   * time: after a restart a herd of 10,000 may be waiting. What waits again is for the next release.
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
