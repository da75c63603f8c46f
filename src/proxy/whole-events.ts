/**
 * Holds a watch's bytes back until their event is whole (D3), so that an upstream may die at any byte and the client
 * has never seen half an event. The decoder says where events end; the bytes are kept here.
 */
import type { Buffered } from "../h2/buffered.ts";
import type { Field } from "../h2/field.ts";
import { type EventFraming, framingFor } from "../watch/framing.ts";
import { Held } from "./held.ts";

export class WholeEvents {
  readonly #framing: EventFraming;
  readonly #held: Held;
  #isOpaque = false;

  private constructor(framing: EventFraming, buffered: Buffered) {
    this.#framing = framing;
    this.#held = new Held(buffered);
  }

  /** Undefined when the answer is of no form that we can read: then it is forwarded as it comes. */
  static of(head: readonly Field[], buffered: Buffered): WholeEvents | undefined {
    const valueOf = (name: string): string => head.find((field) => field.name === name)?.value ?? "";
    const framing = framingFor(valueOf("content-type"), valueOf("content-encoding"));
    return framing === undefined ? undefined : new WholeEvents(framing, buffered);
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
    this.#held.add(bytes, start, end);
  }

  get heldBytes(): number {
    return this.#held.length;
  }

  /** What was held, or undefined when nothing was; it goes out before what completed it. */
  take(): Buffer | undefined {
    return this.#held.length === 0 ? undefined : this.#held.take();
  }
}
