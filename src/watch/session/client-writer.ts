/**
 * The way of a watch's events to its client, whichever leg they come from. What leaves is granted to the leg that sent
 * it, and each octet once: those that were granted before they could leave, or whose leg is gone, grant nothing more.
 */
import type { Clock } from "../../base/clock.ts";
import type { StreamWriter } from "../../h2/core/stream-writer.ts";
import { watchLimits } from "../cache/limits.ts";

export class ClientWriter {
  readonly #down: StreamWriter;
  readonly #clock: Clock;
  #prepaid = 0;
  /** Since when something waits without a break; -1 when nothing does. */
  #waitsSince = -1;

  constructor(down: StreamWriter, clock: Clock) {
    this.#down = down;
    this.#clock = clock;
  }

  send(bytes: Buffer, start: number, end: number): void {
    this.#down.sendData(bytes, start, end, false);
    if (this.#waitsSince < 0 && this.#down.queuedBytes > 0) this.#waitsSince = this.#clock.now();
  }

  prepaid(count: number): void {
    this.#prepaid += count;
  }

  /** Another leg sends from now on: what still waits came from the one before. */
  change(): void {
    this.#prepaid = Math.max(this.#prepaid, this.#down.queuedBytes);
  }

  /** `count` octets have left; returns how many are to be granted. */
  waitUntilReady(count: number): number {
    if (this.#waitsSince >= 0 && this.#down.queuedBytes === 0) this.#waitsSince = -1;
    const paid = Math.min(count, this.#prepaid);
    this.#prepaid -= paid;
    return count - paid;
  }

  /**
   * Does the client not keep up? A burst waits for a turn of the loop, too: only what has waited for as long as it
   * takes the apiserver to give a slow watcher up counts (watch.md §5.5).
   */
  get isBlocked(): boolean {
    return this.#waitsSince >= 0 && this.#clock.now() - this.#waitsSince >= watchLimits.slowWatchMs;
  }
}
