/**
 * Counts all bytes that this process buffers, against one limit. Flow-control windows limit the bytes of each stream
 * and each session, but not the total of all sessions (D2).
 */
export class Buffered {
  readonly #limitBytes: number;
  #bytes = 0;
  /**
   * Called after each addition that leaves the total above the limit. Must end the exchange (one request with its
   * response) that buffers the most bytes.
   */
  onOver: () => void = () => {};

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get isOver(): boolean {
    return this.#bytes > this.#limitBytes;
  }

  /** True if more than half of the limit is used. Receive windows then stop growing, and large windows shrink. */
  get isTight(): boolean {
    return this.#bytes * 2 > this.#limitBytes;
  }

  add(count: number): void {
    this.#bytes += count;
    if (count > 0 && this.isOver) this.onOver();
  }
}

const none: Buffer = Buffer.alloc(0);

/**
 * Keeps bytes until they can be forwarded, in one buffer that doubles when it is full. A Buffer object for each chunk
 * would cost 200 bytes, even for a chunk of one byte (A16, A60).
 */
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

  /** Appends a copy of the bytes, because the caller will overwrite its chunk. */
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

  /** Returns all buffered bytes in order, and keeps them. Later additions do not change the returned bytes. */
  peek(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  take(): Buffer {
    const all = this.#bytes.subarray(0, this.#length);
    this.#buffered.add(-this.#length);
    this.#bytes = none;
    this.#length = 0;
    return all;
  }
}
