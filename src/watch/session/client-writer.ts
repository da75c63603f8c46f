/**
 * Writes the events of a watch to its client. When bytes have left for the client, the upstream stream that sent them
 * gets flow-control credit for each byte once. No credit is due for bytes that got it on receipt, or whose upstream
 * stream is gone.
 */
import type { Clock } from "../../base/clock.ts";
import type { StreamWriter } from "../../h2/core/stream-writer.ts";
import { watchLimits } from "../cache/limits.ts";

export class ClientWriter {
  readonly #down: StreamWriter;
  readonly #clock: Clock;
  #prepaid = 0;
  /** Clock reading since which data has been waiting without a break; -1: no data waits. */
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

  /** Called when another upstream stream takes over. Waiting bytes of the previous stream give no more credit. */
  change(): void {
    this.#prepaid = Math.max(this.#prepaid, this.#down.queuedBytes);
  }

  /** Called when `count` bytes have left for the client. Returns how many of them are due flow-control credit. */
  creditFor(count: number): number {
    if (this.#waitsSince >= 0 && this.#down.queuedBytes === 0) this.#waitsSince = -1;
    const paid = Math.min(count, this.#prepaid);
    this.#prepaid -= paid;
    return count - paid;
  }

  /**
   * True if the client reads too slowly: data has waited as long as the apiserver waits before it ends a slow watcher
   * (watch.md §5.5). A shorter wait does not count, because every burst waits for a turn of the event loop.
   */
  get isBlocked(): boolean {
    return this.#waitsSince >= 0 && this.#clock.now() - this.#waitsSince >= watchLimits.slowWatchMs;
  }
}
