/**
 * What a sentinel's second stream has delivered before the first: whole events that wait until the first stream delivers
 * them, too. If the first stream is lost, they are forwarded to the client at once, in order.
 */
import type { WatchEvent } from "../codec/event.ts";

/** One whole event with its octets. */
export type Waiting = { readonly event: WatchEvent; readonly bytes: Buffer };

export class Ahead {
  readonly #waiting: Waiting[] = [];
  #bytes = 0;

  get count(): number {
    return this.#waiting.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get next(): Waiting | undefined {
    return this.#waiting[0];
  }

  /** `event` is the decoder, whose fields change with its next event, so they are copied. */
  push(event: WatchEvent, bytes: Buffer): void {
    const { type, version, endsInitialEvents, code, reason, oldest, key } = event;
    // Of several bookmarks in a row the last one proves everything that the others did.
    if (type === "BOOKMARK" && this.#waiting.at(-1)?.event.type === "BOOKMARK")
      this.#drop(this.#waiting.pop());
    this.#waiting.push({
      event: { type, version, endsInitialEvents, code, reason, oldest, key },
      bytes,
    });
    this.#bytes += bytes.length;
  }

  shift(): Waiting | undefined {
    const first = this.#waiting.shift();
    this.#drop(first);
    return first;
  }

  #drop(waiting: Waiting | undefined): void {
    this.#bytes -= waiting?.bytes.length ?? 0;
  }
}
