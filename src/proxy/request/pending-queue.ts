/**
 * Requests that no backend can take just now. They wait, unsent, for any verdict that changes that, and are sent in the
 * order in which they came; their upstream connections are opened no faster than each backend's budget of dials allows.
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { patiently } from "../../health/patience.ts";

type Waiting = { readonly place: () => void; readonly stop: () => void };

export class PendingQueue {
  readonly #clock: Clock;
  #waiting = new Set<Waiting>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Until when a request that is held from now on waits. */
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
    // A stall of ours is not counted: a backend may have come back meanwhile.
    const stop = patiently(this.#clock, leftMs, () => {
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

  /** A backend may be asked again. Each in a turn of its own: a fault in one is not felt by the next. */
  release(): void {
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const { place, stop } of waiting) {
      stop();
      this.#clock.soon(place);
    }
  }
}
