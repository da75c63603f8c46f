/**
 * Writes a watch's events to its client, from whichever upstream stream. Bytes that have left are granted as
 * flow-control credit to the stream that sent them, each byte once. Bytes that were granted on receipt, or whose stream
 * is gone, grant nothing more.
 */
import type { Clock } from "../../base/clock.ts";
import type { StreamWriter } from "../../h2/core/stream-writer.ts";
import { watchLimits } from "../cache/limits.ts";

export class ClientWriter {
  readonly #down: StreamWriter;
  readonly #clock: Clock;
  #prepaid = 0;
  /** Since when data has been waiting without a break; -1 if none is. */
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

  /** Another upstream stream sends from now on: the bytes that still wait came from the previous one. */
  change(): void {
    this.#prepaid = Math.max(this.#prepaid, this.#down.queuedBytes);
  }

  /** `count` bytes have left; returns how many of them to grant. */
  creditFor(count: number): number {
    if (this.#waitsSince >= 0 && this.#down.queuedBytes === 0) this.#waitsSince = -1;
    const paid = Math.min(count, this.#prepaid);
    this.#prepaid -= paid;
    return count - paid;
  }

  /**
   * True if the client does not keep up. A burst also waits for a turn of the event loop, so only data that has waited as
   * long as the apiserver waits before it ends a slow watcher counts (watch.md §5.5).
   */
  get isBlocked(): boolean {
    return this.#waitsSince >= 0 && this.#clock.now() - this.#waitsSince >= watchLimits.slowWatchMs;
  }
}
