/**
 * Counts the messages of a websocket in one direction (RFC 6455 §5.2): an apiserver sends each watch event in a message
 * of its own (watch.md §1.2). Only frame headers are read; payloads are skipped by their length.
 *
 *   fin · · · opcode | mask length7 | length of 2 or 8 bytes, if length7 is 126 or 127 | 4 bytes of mask | payload
 */
const finalFragment = 0x80;
/** Opcodes of at least this value are control frames: close, ping, pong. */
const firstControl = 0x8;
const masked = 0x80;
const lengthBytes = new Map([
  [126, 2],
  [127, 8],
]);

export class Messages {
  count = 0;
  /**
   * Number of header bytes still to read: first the two bytes that every header has, then those of an extended length.
   */
  #headerLeft = 2;
  #first = 0;
  /** True after the first two bytes of a header were read, while the extended length may follow. */
  #isBegun = false;
  #isMasked = false;
  #length = 0;
  #payloadLeft = 0;

  feed(bytes: Buffer, start: number, end: number): void {
    let here = start;
    while (here < end) {
      if (this.#headerLeft > 0) this.#readHeader(bytes[here++] ?? 0);
      else {
        const taken = Math.min(this.#payloadLeft, end - here);
        here += taken;
        this.#payloadLeft -= taken;
      }
      if (this.#headerLeft === 0 && this.#payloadLeft === 0) this.#endFrame();
    }
  }

  #readHeader(byte: number): void {
    if (this.#isBegun) return this.#readLength(byte);
    this.#headerLeft--;
    if (this.#headerLeft === 1) {
      this.#first = byte;
      return;
    }
    const length = byte % masked;
    this.#isBegun = true;
    this.#isMasked = byte >= masked;
    this.#headerLeft = lengthBytes.get(length) ?? 0;
    this.#length = this.#headerLeft > 0 ? 0 : length;
    if (this.#headerLeft === 0) this.#beginPayload();
  }

  #readLength(byte: number): void {
    // Above 2^53 the length is inexact, but no stream lasts long enough for that.
    this.#length = this.#length * 256 + byte;
    this.#headerLeft--;
    if (this.#headerLeft === 0) this.#beginPayload();
  }

  /** Adds the mask's four bytes to the payload's length, so that the mask is skipped with the payload. */
  #beginPayload(): void {
    this.#payloadLeft = this.#length + (this.#isMasked ? 4 : 0);
  }

  #endFrame(): void {
    const isControl = this.#first % 16 >= firstControl;
    if (this.#first >= finalFragment && !isControl) this.count++;
    this.#isBegun = false;
    this.#headerLeft = 2;
  }
}
