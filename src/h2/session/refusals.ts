/** How often a client's requests are refused unread, before its session goes: for being too many, or too long. */
import { limits } from "../../base/limits.ts";
import { errorCode, ProtocolError } from "../core/protocol-error.ts";

function calm(what: string): ProtocolError {
  return new ProtocolError(errorCode.ENHANCE_YOUR_CALM, "session", what);
}

export class Refusals {
  #inRow = 0;
  #longHeads = 0;

  /** With so many open, what is wrong with one more (A3); it was not looked at, so the client may send it again. */
  ofOneOf(openCount: number, mostStreams: number): ProtocolError | undefined {
    if (openCount <= mostStreams) {
      this.#inRow = 0;
      return undefined;
    }
    this.#inRow += 1;
    if (this.#inRow > limits.refusedStreams) throw calm("Too many streams refused");
    return new ProtocolError(errorCode.REFUSED_STREAM, "stream", "Too many streams at once");
  }

  /** A header list beyond its bound: one is answered, the next ends the session (A7). */
  longHead(): void {
    this.#longHeads += 1;
    if (this.#longHeads > 1) throw calm("Header lists too long");
  }
}
