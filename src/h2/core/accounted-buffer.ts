/**
 * Octets that are kept until they may go on, in one buffer that grows by doubling: a Buffer for each piece would
 * cost 200 bytes for an octet that comes alone (A16, A60).
 */
import type { Buffered } from "./buffered.ts";

const none: Buffer = Buffer.alloc(0);

export class AccountedBuffer {
  readonly #buffered: Buffered;
  #bytes: Buffer = none;
  #length = 0;

  constructor(buffered: Buffered) {
    this.#buffered = buffered;
  }

  get length(): number {
    return this.#length;
  }

  /** Keeps a copy: the chunk is not ours. */
  add(bytes: Buffer, start: number, end: number): void {
    const needed = this.#length + end - start;
    if (needed > this.#bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length));
      this.#bytes.copy(grown, 0, 0, this.#length);
      this.#bytes = grown;
    }
    bytes.copy(this.#bytes, this.#length, start, end);
    this.#length = needed;
    this.#buffered.add(end - start);
  }

  /** All of it, in order, and still held: what is added later does not change these octets. */
  peek(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** All of it, in order; nothing is held afterwards. */
  take(): Buffer {
    const all = this.#bytes.subarray(0, this.#length);
    this.#buffered.add(-this.#length);
    this.#bytes = none;
    this.#length = 0;
    return all;
  }
}
