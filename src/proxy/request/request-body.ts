/**
 * The bytes of a request's body that may have to be sent later or again. While the request has no upstream connection,
 * all bytes that arrive are kept; the client's flow-control window limits them. After that, only a short body is kept,
 * until the response begins.
 */

import type { Buffered } from "../../h2/core/buffered.ts";
import type { Field } from "../../h2/core/field.ts";
import { type Block, giveBack, largestBlockBytes, roomFor } from "../../h2/core/slabs.ts";
import type { StreamWriter } from "../../h2/core/stream-writer.ts";
import { requestLimits } from "./limits.ts";

const nothing = Buffer.alloc(0);

/**
 * If nothing is kept yet, fewer bytes than this get a Buffer of their own, because they are mostly the whole body and
 * would leave most of a block unused.
 */
const smallBytes = 2048;

/** Kept bytes: the first `end` bytes of `bytes`. `block`: where they are; undefined: in a Buffer of their own. */
type Piece = { readonly bytes: Buffer; end: number; readonly block: Block | undefined };

export class RequestBody {
  readonly #buffered: Buffered;
  /**
   * Blocks of slabs.ts instead of new Buffers: V8 runs a full garbage collection for every 64 MiB of new Buffers, which
   * took a quarter of the CPU time of an upload.
   */
  #pieces: Piece[] = [];
  #length = 0;
  #trailers: readonly Field[] | undefined;
  #isRepeatable = true;
  #isOver = false;

  constructor(buffered: Buffered) {
    this.#buffered = buffered;
  }

  /** Number of kept bytes. */
  get length(): number {
    return this.#length;
  }

  /** True if all sent bytes are kept, so that they can be sent again if a backend refuses the stream. */
  get isRepeatable(): boolean {
    return this.#isRepeatable;
  }

  /** Keeps a copy of the bytes, because the caller will overwrite its chunk. */
  keep(bytes: Buffer, start: number, end: number): void {
    let from = start;
    while (from < end) from = this.#append(bytes, from, end);
    this.#length += end - start;
    this.#buffered.add(end - start);
  }

  /** Copies bytes from `from` on, as many as fit into one piece. Returns the index of the first byte that is left. */
  #append(bytes: Buffer, from: number, end: number): number {
    const last = this.#pieces.at(-1);
    const piece = last === undefined || last.end === last.bytes.length ? this.#begin(end - from) : last;
    const to = Math.min(end, from + piece.bytes.length - piece.end);
    bytes.copy(piece.bytes, piece.end, from, to);
    piece.end += to - from;
    return to;
  }

  #begin(count: number): Piece {
    const isSmall = this.#pieces.length === 0 && count < smallBytes;
    const block = isSmall ? undefined : roomFor(Math.min(count, largestBlockBytes));
    const piece = { bytes: block?.bytes ?? Buffer.allocUnsafeSlow(count), end: 0, block };
    this.#pieces.push(piece);
    return piece;
  }

  /** Keeps bytes that are being sent, because they may have to be sent again. A long body is not kept. */
  keepForAgain(bytes: Buffer, start: number, end: number): void {
    if (!this.#isRepeatable) return;
    if (this.#length + end - start > requestLimits.repeatableBodyBytes) this.forget();
    else this.keep(bytes, start, end);
  }

  /** True if the client has sent the whole body. */
  get isOver(): boolean {
    return this.#isOver;
  }

  end(trailers?: readonly Field[]): void {
    this.#isOver = true;
    this.#trailers = trailers;
  }

  /** Sends all kept bytes, and the end of the body if it has arrived. */
  sendTo(up: StreamWriter): void {
    const isLast = this.#isOver && this.#trailers === undefined;
    const pieces = this.#pieces;
    const last = pieces.at(-1);
    for (const piece of pieces) {
      up.sendData(piece.bytes, 0, piece.end, isLast && piece === last);
      // The exchange may have ended meanwhile. Its blocks then belong to others.
      if (this.#pieces !== pieces) return;
    }
    if (last === undefined && isLast) up.sendData(nothing, 0, 0, true);
    if (this.#trailers !== undefined) up.sendHeaders(this.#trailers, true);
    if (this.#length > requestLimits.repeatableBodyBytes) this.forget();
  }

  /** Drops the kept bytes, because the body will not be sent again. */
  forget(): void {
    this.#isRepeatable = false;
    const pieces = this.#pieces;
    const length = this.#length;
    if (length === 0) return;
    this.#pieces = [];
    this.#length = 0;
    for (const { block } of pieces) if (block !== undefined) giveBack(block);
    this.#buffered.add(-length);
  }
}
