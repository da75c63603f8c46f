/**
 * Finds where the body of a forwarded HTTP/1.1 response ends. Bytes are counted and checked but never changed: the
 * client gets the backend's own framing.
 */
import { limits } from "../../base/limits.ts";
import type { Framing } from "./h1-head.ts";

/** Maximum number of bytes in a chunk-size line with its extensions, or in a trailer line. */
const h1LineBytes = 8 * 1024;

export type BodyFault = "chunk_line_too_long" | "malformed_chunks";

/** Follows one body. `take` returns how many of the bytes belong to the body, or why the bytes are malformed. */
export type BodyEnd = {
  take(bytes: Buffer): number | BodyFault;
  /**
   * True if the body is complete; false if more bytes must follow; undefined if only the end of the connection ends the
   * body.
   */
  readonly isWhole: boolean | undefined;
};

export function bodyEnd(framing: Framing): BodyEnd {
  if (framing === "chunked") return new Chunks();
  return framing === "close" ? { take: (bytes) => bytes.length, isWhole: undefined } : new Length(framing);
}

class Length implements BodyEnd {
  #left: number;

  constructor(length: number) {
    this.#left = length;
  }

  get isWhole(): boolean {
    return this.#left === 0;
  }

  take(bytes: Buffer): number {
    const taken = Math.min(this.#left, bytes.length);
    this.#left -= taken;
    return taken;
  }
}

/** The part of a chunked body that must come next. `crlf`: the CRLF after a chunk. `nothing`: the body has ended. */
type Expected = "size" | "chunk" | "crlf" | "trailer" | "nothing";

/**
 * Matches a chunk-size line. Eight digits are enough for a chunk of 4 GiB. Chunk extensions are forwarded (RFC 9112
 * §7.1.1).
 */
const sizeLine = /^([0-9A-Fa-f]{1,8})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?\r\n$/;
const trailerLine = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n$/;

class Chunks implements BodyEnd {
  #expected: Expected = "size";
  #left = 0;
  #line = "";
  #trailerBytes = 0;

  get isWhole(): boolean {
    return this.#expected === "nothing";
  }

  take(bytes: Buffer): number | BodyFault {
    let at = 0;
    while (at < bytes.length && this.#expected !== "nothing") {
      if (this.#expected === "chunk") at += this.#skip(bytes.length - at);
      else {
        const feed = bytes.indexOf(10, at);
        const end = feed < 0 ? bytes.length : feed + 1;
        this.#line += bytes.toString("latin1", at, end);
        at = end;
        if (this.#line.length > h1LineBytes) return "chunk_line_too_long";
        if (feed >= 0 && !this.#endLine()) return "malformed_chunks";
      }
    }
    return at;
  }

  #skip(count: number): number {
    const skipped = Math.min(this.#left, count);
    this.#left -= skipped;
    if (this.#left === 0) this.#expected = "crlf";
    return skipped;
  }

  /** Returns false if the line is not the expected one. */
  #endLine(): boolean {
    const line = this.#line;
    this.#line = "";
    if (this.#expected === "size") return this.#endSize(sizeLine.exec(line)?.[1]);
    if (this.#expected === "crlf") {
      this.#expected = "size";
      return line === "\r\n";
    }
    this.#trailerBytes += line.length;
    if (line === "\r\n") this.#expected = "nothing";
    else if (!trailerLine.test(line)) return false;
    return this.#trailerBytes <= limits.headerListBytes;
  }

  #endSize(digits: string | undefined): boolean {
    if (digits === undefined) return false;
    this.#left = Number.parseInt(digits, 16);
    this.#expected = this.#left === 0 ? "trailer" : "chunk";
    return true;
  }
}
