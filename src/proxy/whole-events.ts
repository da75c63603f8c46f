/**
 * Holds a watch's bytes back until their event is whole (D3), so that an upstream may die at any byte and the client
 * has never seen half an event. The decoder says where events end; the bytes are kept here.
 */
import type { Field } from "../h2/field.ts";
import { limits } from "../limits.ts";
import { type EventFraming, framingFor } from "../watch/framing.ts";

const none: Buffer = Buffer.alloc(0);

export class WholeEvents {
  readonly #framing: EventFraming;
  /** Grows by doubling: a Buffer for each piece would cost 200 bytes for an octet that comes alone (A60). */
  #held: Buffer = none;
  #heldBytes = 0;
  #isOpaque = false;

  private constructor(framing: EventFraming) {
    this.#framing = framing;
  }

  /** Undefined when the answer is of no form that we can read: then it is forwarded as it comes. */
  static of(head: readonly Field[]): WholeEvents | undefined {
    const valueOf = (name: string): string => head.find((field) => field.name === name)?.value ?? "";
    const framing = framingFor(valueOf("content-type"), valueOf("content-encoding"));
    return framing === undefined ? undefined : new WholeEvents(framing);
  }

  /** Were all bytes so far events? If so the stream may be ended between two of them. */
  get isReadable(): boolean {
    return !this.#isOpaque;
  }

  get events(): number {
    return this.#framing.events;
  }

  /** How far whole events reach in `bytes[start, end)`; all of it once the stream is not what it claimed. */
  feed(bytes: Buffer, start: number, end: number): number {
    if (this.#isOpaque) return end;
    const upTo = this.#framing.feed(bytes, start, end);
    if (upTo >= 0) return upTo;
    this.#isOpaque = true;
    return end;
  }

  /** Keeps a copy: the chunk is not ours. */
  hold(bytes: Buffer, start: number, end: number): void {
    const needed = this.#heldBytes + end - start;
    if (needed > this.#held.length) {
      const grown = Buffer.allocUnsafeSlow(
        Math.max(needed, Math.min(2 * this.#held.length, limits.eventBytes)),
      );
      this.#held.copy(grown, 0, 0, this.#heldBytes);
      this.#held = grown;
    }
    bytes.copy(this.#held, this.#heldBytes, start, end);
    this.#heldBytes = needed;
  }

  /** What was held, or undefined when nothing was; it goes out before what completed it. */
  take(): Buffer | undefined {
    if (this.#heldBytes === 0) return undefined;
    const held = this.#held.subarray(0, this.#heldBytes);
    this.#held = none;
    this.#heldBytes = 0;
    return held;
  }
}
