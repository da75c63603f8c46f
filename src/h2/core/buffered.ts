/**
 * Octets that wait in this process, of all sessions and exchanges together, against one limit (D2). Each stream is
 * bounded by its windows; this bounds their number times their windows.
 */
export class Buffered {
  readonly #limitBytes: number;
  #bytes = 0;
  /** Called when the limit is passed, at each octet beyond it: whoever holds the most has to go. */
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

  /** Past half of the limit windows grow no more, and large ones shrink. */
  get isTight(): boolean {
    return this.#bytes * 2 > this.#limitBytes;
  }

  /** `count` octets began to wait; negative when they went. */
  add(count: number): void {
    this.#bytes += count;
    if (count > 0 && this.isOver) this.onOver();
  }
}
