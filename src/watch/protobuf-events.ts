/**
 * Watch events as Kubernetes protobuf: a length of four octets, big-endian, then as many of the event (watch.md §2.1).
 * The apiserver writes the two apart, so either may be cut anywhere.
 */
import { limits } from "../limits.ts";
import type { EventFraming } from "./framing.ts";

const lengthOctets = 4;

export class ProtobufEvents implements EventFraming {
  #events = 0;
  /** Octets of the length still to come; 0 while the event itself comes. */
  #lengthLeft = lengthOctets;
  /** The length as far as it is known, then what is still to come of the event. */
  #left = 0;

  get events(): number {
    return this.#events;
  }

  get isWhole(): boolean {
    return this.#lengthLeft === lengthOctets;
  }

  feed(bytes: Buffer, start: number, end: number): number {
    let whole = start;
    let at = start;
    while (at < end) {
      at = this.#readLength(bytes, at, end);
      if (this.#lengthLeft > 0) break;
      // An empty event cannot be, since it would have a type; and nobody may announce a gigabyte (A60).
      if (this.#left === 0 || this.#left > limits.eventBytes) return -1;
      at = this.#readEvent(at, end);
      if (this.isWhole) whole = at;
    }
    return whole;
  }

  #readLength(bytes: Buffer, start: number, end: number): number {
    let at = start;
    while (this.#lengthLeft > 0 && at < end) {
      // Not shifted: the highest bit must not make it negative.
      this.#left = this.#left * 256 + (bytes[at++] ?? 0);
      this.#lengthLeft--;
    }
    return at;
  }

  #readEvent(start: number, end: number): number {
    const taken = Math.min(this.#left, end - start);
    this.#left -= taken;
    if (this.#left === 0) {
      this.#events++;
      this.#lengthLeft = lengthOctets;
    }
    return start + taken;
  }
}
