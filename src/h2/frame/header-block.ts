/** Joins HEADERS and its CONTINUATION frames into one block, within the limits of A5 and A6. */
import { limits } from "../../base/limits.ts";
import { errorCode, ProtocolError } from "../core/protocol-error.ts";

export class HeaderBlock {
  #id = 0;
  #parts: Buffer[] = [];
  #bytes = 0;
  endStream = false;
  dependsOnSelf = false;

  /** The stream whose block is still open, or 0: while it is, no other frame may come (RFC 9113 §6.10). */
  get id(): number {
    return this.#id;
  }

  /** The octets are copied: the chunk that they came in is not ours to keep. */
  open(id: number, bytes: Buffer, start: number, end: number): void {
    this.#id = id;
    this.#parts = [Buffer.from(bytes.subarray(start, end))];
    this.#bytes = end - start;
  }

  append(bytes: Buffer, start: number, end: number): void {
    this.#parts.push(Buffer.from(bytes.subarray(start, end)));
    this.#bytes += end - start;
    if (this.#parts.length - 1 > limits.continuationFrames || this.#bytes > limits.headerBlockBytes) {
      throw new ProtocolError(
        errorCode.ENHANCE_YOUR_CALM,
        "session",
        "Header block in too many pieces or too large",
      );
    }
  }

  /** The whole block; the next HEADERS starts anew. */
  take(): Buffer {
    const whole = Buffer.concat(this.#parts, this.#bytes);
    this.#parts = [];
    this.#id = 0;
    return whole;
  }
}
