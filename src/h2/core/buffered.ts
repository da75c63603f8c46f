/**
 * Counts the bytes buffered in this process, over all sessions and exchanges, against one limit (D2). Windows bound
 * each stream; this bounds the sum over all streams.
 */
export class Buffered {
  readonly #limitBytes: number;
  #bytes = 0;
  /** Called for every addition above the limit. It must end the exchange that holds the most. */
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

  /** True above half of the limit: windows stop growing and large ones shrink. */
  get isTight(): boolean {
    return this.#bytes * 2 > this.#limitBytes;
  }

  /** Adds `count` bytes to the total; negative when bytes have been forwarded. */
  add(count: number): void {
    this.#bytes += count;
    if (count > 0 && this.isOver) this.onOver();
  }
}
