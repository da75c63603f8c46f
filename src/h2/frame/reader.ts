/**
 * Parses bytes into frames. A chunk may end at any position, and frames are passed on as positions in their chunk. If a
 * chunk ends inside a frame, only the frame's beginning is copied; a large DATA frame is passed on in pieces. The
 * reader checks sizes and flags (RFC 9113 §4, §6). The session interprets the frames.
 */
import { u8, u24, u31, u32 } from "../core/bytes.ts";
import { h2Limits } from "../core/limits.ts";
import { errorCode, ProtocolError } from "../core/protocol-error.ts";
import {
  clientPreface,
  flag,
  frameBytes,
  frameHeaderBytes,
  frameType,
  type SessionFrames,
  type StreamFrames,
} from "./frame.ts";

/**
 * If this many bytes of a DATA frame or fewer have arrived, the reader holds them until more arrive. Passing on many
 * tiny pieces would take more time.
 */
const pieceBytes = 2048;

function sizeError(what: string): ProtocolError {
  return new ProtocolError(errorCode.FRAME_SIZE_ERROR, "session", `${what} of a wrong size`);
}

function protocolError(what: string): ProtocolError {
  return new ProtocolError(errorCode.PROTOCOL_ERROR, "session", what);
}

function calm(what: string): ProtocolError {
  return new ProtocolError(errorCode.ENHANCE_YOUR_CALM, "session", what);
}

export class FrameReader {
  readonly #streams: StreamFrames;
  readonly #session: SessionFrames;
  readonly #block = new HeaderBlock();
  #carry: Buffer | undefined;
  /** The DATA frame that is being passed on in pieces. `left`: number of its bytes that have not arrived. */
  #piece: { readonly id: number; readonly flags: number; left: number } | undefined;
  #prefaceLeft: number;
  #isStopped = false;
  #progress = 0;

  constructor(streams: StreamFrames, session: SessionFrames, expectsPreface: boolean) {
    this.#streams = streams;
    this.#session = session;
    this.#prefaceLeft = expectsPreface ? clientPreface.length : 0;
  }

  /** True if a frame or a header block is incomplete. The session then sets a deadline for it (A6, A18). */
  get isMidFrame(): boolean {
    return this.#carry !== undefined || this.#piece !== undefined || this.#block.id !== 0;
  }

  /**
   * A counter that grows with each complete frame, each complete header block and each piece of DATA, but not with a
   * part of a header block. When the counter has grown, the session restarts its deadline for an incomplete frame.
   */
  get progress(): number {
    return this.#progress;
  }

  get isMidBlock(): boolean {
    return this.#block.id !== 0;
  }

  /** Makes the reader ignore all further bytes, including the rest of the chunk that it is parsing. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Parses a chunk. Throws a ProtocolError if the session must end, and passes on the exceptions of callbacks. */
  receive(chunk: Buffer): void {
    let at = this.#preface(chunk, 0);
    at = this.#resumePiece(chunk, at);
    at = this.#completeCarry(chunk, at);
    while (!this.#isStopped && chunk.length - at >= frameHeaderBytes) {
      const length = u24(chunk, at);
      const next = at + frameHeaderBytes + length;
      if (length > frameBytes) throw sizeError("Frame");
      if (next > chunk.length) {
        if (!this.#startPiece(chunk, at, length)) break;
        return;
      }
      this.#frame(chunk, at, length);
      at = next;
    }
    if (at < chunk.length && !this.#isStopped) this.#carry = Buffer.from(chunk.subarray(at));
  }

  #preface(chunk: Buffer, at: number): number {
    if (this.#prefaceLeft === 0) return at;
    const done = clientPreface.length - this.#prefaceLeft;
    const count = Math.min(this.#prefaceLeft, chunk.length);
    if (clientPreface.compare(chunk, 0, count, done, done + count) !== 0)
      throw protocolError("Bad client preface");
    this.#prefaceLeft -= count;
    return count;
  }

  /**
   * Begins to pass on a DATA frame whose end has not arrived. Returns false if the frame cannot be passed on in pieces
   * now, because it is no DATA frame, is padded, or has only begun to arrive (see `pieceBytes`).
   */
  #startPiece(chunk: Buffer, at: number, length: number): boolean {
    const flags = u8(chunk, at + 4);
    const have = chunk.length - at - frameHeaderBytes;
    if (u8(chunk, at + 3) !== frameType.DATA || (flags & flag.PADDED) !== 0 || have <= pieceBytes)
      return false;
    this.#openPiece(u31(chunk, at + 5), flags, length - have);
    this.#streams.data(u31(chunk, at + 5), chunk, at + frameHeaderBytes, chunk.length, false);
    return true;
  }

  #openPiece(id: number, flags: number, left: number): void {
    if (this.#block.id !== 0) throw protocolError("DATA inside a header block");
    if (id === 0) throw protocolError("DATA on stream 0");
    this.#piece = { id, flags, left };
  }

  #resumePiece(chunk: Buffer, at: number): number {
    const piece = this.#piece;
    if (piece === undefined || at === chunk.length) return at;
    const count = Math.min(piece.left, chunk.length - at);
    piece.left -= count;
    const isLast = piece.left === 0;
    if (isLast) this.#piece = undefined;
    this.#progress += 1;
    const ends = isLast && (piece.flags & flag.END_STREAM) !== 0;
    this.#streams.data(piece.id, chunk, at, at + count, ends);
    return at + count;
  }

  #completeCarry(chunk: Buffer, at: number): number {
    const carry = this.#carry;
    if (carry === undefined) return at;
    const missingHead = Math.max(0, frameHeaderBytes - carry.length);
    if (chunk.length - at < missingHead) {
      this.#carry = Buffer.concat([carry, chunk.subarray(at)]);
      return chunk.length;
    }
    const head = missingHead === 0 ? carry : Buffer.concat([carry, chunk.subarray(at, at + missingHead)]);
    const length = u24(head, 0);
    if (length > frameBytes) throw sizeError("Frame");
    const missing = frameHeaderBytes + length - carry.length;
    const isWhole = missing <= chunk.length - at;
    const end = isWhole ? at + missing : chunk.length;
    const joined = Buffer.concat([carry, chunk.subarray(at, end)]);
    if (isWhole) {
      this.#carry = undefined;
      this.#frame(joined, 0, length);
    } else {
      this.#carry = this.#startPiece(joined, 0, length) ? undefined : joined;
      // Each piece of DATA counts as progress: a slow upload is legitimate as long as bytes arrive (A23).
      if (u8(joined, 3) === frameType.DATA && this.#block.id === 0) this.#progress += 1;
    }
    return end;
  }

  #frame(bytes: Buffer, at: number, length: number): void {
    const type = u8(bytes, at + 3);
    const flags = u8(bytes, at + 4);
    const id = u31(bytes, at + 5);
    const start = at + frameHeaderBytes;
    const end = start + length;
    if (this.#block.id !== 0 && (type !== frameType.CONTINUATION || id !== this.#block.id)) {
      throw protocolError("Frame inside a header block");
    }
    this.#dispatch(type, id, bytes, start, end, flags);
    if (this.#block.id === 0) this.#progress += 1;
  }

  #dispatch(type: number, id: number, bytes: Buffer, start: number, end: number, flags: number): void {
    switch (type) {
      case frameType.DATA:
        return this.#data(id, bytes, start, end, flags);
      case frameType.HEADERS:
        return this.#headers(id, bytes, start, end, flags);
      case frameType.CONTINUATION:
        return this.#continuation(id, bytes, start, end, flags);
      default:
        return this.#control(type, id, bytes, start, end, flags);
    }
  }

  #data(id: number, bytes: Buffer, start: number, end: number, flags: number): void {
    if (id === 0) throw protocolError("DATA on stream 0");
    const endStream = (flags & flag.END_STREAM) !== 0;
    if ((flags & flag.PADDED) === 0) return this.#streams.data(id, bytes, start, end, endStream);
    const to = withoutPadding(bytes, start, end);
    this.#streams.padding(id, end - to + 1);
    this.#streams.data(id, bytes, start + 1, to, endStream);
  }

  #headers(id: number, bytes: Buffer, start: number, end: number, flags: number): void {
    if (id === 0) throw protocolError("HEADERS on stream 0");
    let from = start;
    let to = end;
    if ((flags & flag.PADDED) !== 0) {
      to = withoutPadding(bytes, start, end);
      from += 1;
    }
    let dependsOnSelf = false;
    if ((flags & flag.PRIORITY) !== 0) {
      if (to - from < 5) throw sizeError("HEADERS with priority");
      dependsOnSelf = u31(bytes, from) === id;
      from += 5;
    }
    const endStream = (flags & flag.END_STREAM) !== 0;
    if ((flags & flag.END_HEADERS) !== 0) {
      this.#streams.headers(id, bytes, from, to, endStream, dependsOnSelf);
      return;
    }
    this.#block.open(id, bytes, from, to);
    this.#block.endStream = endStream;
    this.#block.dependsOnSelf = dependsOnSelf;
  }

  #continuation(id: number, bytes: Buffer, start: number, end: number, flags: number): void {
    const block = this.#block;
    if (block.id === 0) throw protocolError("CONTINUATION without HEADERS");
    block.append(bytes, start, end);
    if (block.isTooLong) {
      const { skipFields } = this.#streams;
      if (skipFields === undefined) throw calm("Header block in too many pieces or too large");
      block.passOn(skipFields);
    }
    if ((flags & flag.END_HEADERS) === 0) return;
    const whole = block.take();
    this.#streams.headers(id, whole, 0, whole.length, block.endStream, block.dependsOnSelf);
  }

  #control(type: number, id: number, bytes: Buffer, start: number, end: number, flags: number): void {
    const length = end - start;
    switch (type) {
      case frameType.PRIORITY:
        if (id === 0) throw protocolError("PRIORITY on stream 0");
        // RFC 9113 §6.3 says that a wrong size is a stream error. Here it ends the session, because only a broken peer
        // sends it (A2).
        if (length !== 5) throw sizeError("PRIORITY");
        return this.#session.priority(id, u31(bytes, start) === id);
      case frameType.RST_STREAM:
        if (length !== 4) throw sizeError("RST_STREAM");
        if (id === 0) throw protocolError("RST_STREAM on stream 0");
        return this.#streams.reset(id, u32(bytes, start));
      case frameType.WINDOW_UPDATE:
        if (length !== 4) throw sizeError("WINDOW_UPDATE");
        return this.#streams.windowUpdate(id, u31(bytes, start));
      case frameType.PUSH_PROMISE:
        throw protocolError("PUSH_PROMISE although push is off");
      default:
        return this.#sessionFrame(type, id, bytes, start, end, flags);
    }
  }

  #sessionFrame(type: number, id: number, bytes: Buffer, start: number, end: number, flags: number): void {
    const length = end - start;
    if (type > frameType.CONTINUATION) return this.#session.unknown(length);
    if (id !== 0) throw protocolError("SETTINGS, PING or GOAWAY on a stream");
    if (type === frameType.SETTINGS) return this.#settings(bytes, start, end, (flags & flag.ACK) !== 0);
    if (type === frameType.PING) {
      if (length !== 8) throw sizeError("PING");
      return (flags & flag.ACK) === 0 ? this.#session.ping(bytes, start) : this.#session.pong(bytes, start);
    }
    if (length < 8) throw sizeError("GOAWAY");
    return this.#session.goAwayReceived(u31(bytes, start), u32(bytes, start + 4));
  }

  #settings(bytes: Buffer, start: number, end: number, isAck: boolean): void {
    const length = end - start;
    if (length % 6 !== 0 || (isAck && length > 0)) throw sizeError("SETTINGS");
    return isAck ? this.#session.settingsAcknowledged() : this.#session.settings(bytes, start, end);
  }
}

/** Returns the end of a padded frame's payload (§6.1). Throws if the padding fills the frame or exceeds it. */
function withoutPadding(bytes: Buffer, start: number, end: number): number {
  if (end === start) throw sizeError("Padded frame");
  const to = end - u8(bytes, start);
  if (to < start + 1) throw protocolError("Padding longer than its frame");
  return to;
}

/**
 * Joins a HEADERS frame and its CONTINUATION frames. A block with too many frames or bytes (A5) is not kept whole, but
 * passed on in parts. Throws if even such a block is too long.
 */
export class HeaderBlock {
  #id = 0;
  #parts: Buffer[] = [];
  #bytes = 0;
  /** Number of bytes and frames of the whole block, each short frame counted as `shortFrameBytes`. */
  #work = 0;
  /** Number of the next bytes that are not needed. */
  #unneeded = 0;
  isTooLong = false;
  endStream = false;
  dependsOnSelf = false;

  /** Id of the stream whose header block is incomplete; 0: none. No other frame may arrive within the block (§6.10). */
  get id(): number {
    return this.#id;
  }

  /** Stores a copy of the bytes, because the reader's chunk is reused. */
  open(id: number, bytes: Buffer, start: number, end: number): void {
    this.#id = id;
    this.#parts = [Buffer.from(bytes.subarray(start, end))];
    this.#bytes = end - start;
    this.#work = 0;
    this.#unneeded = 0;
    this.isTooLong = false;
  }

  append(bytes: Buffer, start: number, end: number): void {
    const from = Math.min(end, start + this.#unneeded);
    this.#unneeded -= from - start;
    this.#parts.push(Buffer.from(bytes.subarray(from, end)));
    this.#bytes += end - from;
    this.#work += Math.max(end - start, h2Limits.shortFrameBytes);
    this.isTooLong ||=
      this.#parts.length - 1 > h2Limits.continuationFrames || this.#bytes > h2Limits.headerBlockBytes;
    if (this.#work > h2Limits.longBlockBytes) throw calm("Header block without an end");
  }

  /** Passes on what has arrived. `pass` returns the position up to which it needs no bytes any more. */
  passOn(pass: (part: Buffer) => number): void {
    const part = Buffer.concat(this.#parts, this.#bytes);
    const from = pass(part);
    this.#parts = [part.subarray(from)];
    this.#bytes = Math.max(0, part.length - from);
    this.#unneeded += Math.max(0, from - part.length);
  }

  take(): Buffer {
    if (this.#unneeded > 0)
      throw new ProtocolError(errorCode.COMPRESSION_ERROR, "session", "Block ends inside a string");
    const whole = Buffer.concat(this.#parts, this.#bytes);
    this.#parts = [];
    this.#id = 0;
    return whole;
  }
}
