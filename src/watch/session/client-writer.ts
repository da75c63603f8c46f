/**
 * Writes the events of a watch to its client. Some bytes are *prepaid*: the upstream stream got flow-control credit for
 * them before they were sent to the client. Their number is counted, so that no byte gives credit twice.
 */
import type { Clock } from "../../base/clock.ts";
import type { StreamWriter } from "../../h2/core/stream-writer.ts";
import { watchLimits } from "../limits.ts";

export class ClientWriter {
  readonly #down: StreamWriter;
  readonly #clock: Clock;
  #prepaid = 0;
  /** Clock reading since which data has waited without a break; -1: no data waits. */
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

  /**
   * Called when another upstream stream takes over. The new stream must get no credit for queued bytes of the previous
   * one.
   */
  change(): void {
    this.#prepaid = Math.max(this.#prepaid, this.#down.queuedBytes);
  }

  /**
   * Called when `count` bytes have been sent to the client. Returns the number of bytes for which the upstream stream
   * gets flow-control credit now: those that were not prepaid.
   */
  creditFor(count: number): number {
    if (this.#waitsSince >= 0 && this.#down.queuedBytes === 0) this.#waitsSince = -1;
    const paid = Math.min(count, this.#prepaid);
    this.#prepaid -= paid;
    return count - paid;
  }

  /** True if data has waited as long as the apiserver waits before it ends a slow watch (watch.md §5.5). */
  get isBlocked(): boolean {
    return this.#waitsSince >= 0 && this.#clock.now() - this.#waitsSince >= watchLimits.slowWatchMs;
  }
}
