/**
 * Requests that no backend can take now. They have not been sent, and wait until a backend's health state changes. They
 * are then sent in the order in which they came. The dial budget of each backend limits how many connections are opened
 * for them.
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { inSlices } from "../../base/slices.ts";
import { requestLimits } from "./limits.ts";

type WaitingRequest = { readonly place: () => void; readonly stop: () => void };

export class PendingQueue {
  readonly #clock: Clock;
  readonly #waiting = new Set<WaitingRequest>();

  /**
   * `clock` stops while the event loop is stalled, so that a stall does not use up a request's wait. The proxy cannot
   * notice during a stall that a backend is back (F11).
   */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** The deadline for a request that begins to wait now, as a reading of `clock`. */
  get until(): number {
    return this.#clock.now() + requestLimits.pendingMs;
  }

  /**
   * Calls `place` when a backend can be asked. Calls `refuse` if none can be asked before `until`, or at once if too
   * many requests wait. Returns a function that cancels the wait.
   */
  wait(until: number, place: () => void, refuse: () => void): () => void {
    const leftMs = until - this.#clock.now();
    if (leftMs <= 0 || this.#waiting.size >= limits.waitingExchanges) {
      refuse();
      return () => {};
    }
    const leave = (): void => {
      stop();
      this.#waiting.delete(waiting);
    };
    const stop = this.#clock.after(leftMs, () => {
      leave();
      refuse();
    });
    const waiting: WaitingRequest = { place, stop };
    this.#waiting.add(waiting);
    return leave;
  }

  /** Resolves with true when a backend can be asked again, or with false at `until`. */
  isBack(until: number): Promise<boolean> {
    return new Promise((resolve) => {
      this.wait(
        until,
        () => resolve(true),
        () => resolve(false),
      );
    });
  }

  /**
   * Sends the waiting requests. Called when a backend can be asked again. Works in a later tick, because health states
   * change in the middle of other work, and in slices, because 10,000 requests may wait after a restart. A request that
   * has to wait again waits for the next call.
   */
  release(): void {
    if (this.#waiting.size === 0) return;
    this.#clock.soon(() => {
      inSlices(this.#clock, Array.from(this.#waiting), (waiting) => {
        if (!this.#waiting.delete(waiting)) return;
        waiting.stop();
        waiting.place();
      });
    });
  }
}
