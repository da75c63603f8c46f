/**
 * The octets of an event that is parsed whole because it is rare and small: a BOOKMARK or an ERROR. They are copied
 * only while such an event is incomplete. An event that comes in one piece is read in place.
 */
import { limits } from "../../base/limits.ts";

const none: Buffer = Buffer.alloc(0);

export class SmallEvent {
  #pieces: Buffer = none;
  #isTooLong = false;

  /** Keeps a copy of bytes[start, end): the event continues behind them. */
  keep(bytes: Buffer, start: number, end: number): void {
    if (this.#isTooLong) return;
    this.#isTooLong = this.#pieces.length + end - start > limits.parsedEventBytes;
    this.#pieces = this.#isTooLong ? none : Buffer.concat([this.#pieces, bytes.subarray(start, end)]);
  }

  /** Returns the whole event, whose last piece is bytes[start, end), and forgets it; undefined if it was too long. */
  take(bytes: Buffer, start: number, end: number): Buffer | undefined {
    if (this.#pieces.length > 0) this.keep(bytes, start, end);
    const isTooLong = this.#isTooLong || end - start > limits.parsedEventBytes;
    const whole = this.#pieces.length > 0 ? this.#pieces : bytes.subarray(start, end);
    this.forget();
    return isTooLong ? undefined : whole;
  }

  forget(): void {
    this.#pieces = none;
    this.#isTooLong = false;
  }
}
