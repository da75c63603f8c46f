/**
 * Serialises frames into pooled buffers. All frames of one turn of the event loop are sent with one write (one TLS
 * record, one system call), which saves a quarter of the proxy's total cost.
 *
 * DATA is copied into these buffers, too. If DATA were sent from the chunk in which it arrived, each read would need a
 * new chunk, and V8 would run a full collection for every 64 MiB of chunks. This costs far more than a copy (measured).
 */
import { putFrameHeader, putU16, putU32 } from "../core/bytes.ts";
import type { Field } from "../core/field.ts";
import { giveBackOutput, largestOutputBytes, outputBuffer } from "../core/output-buffers.ts";
import { errorCode } from "../core/protocol-error.ts";
import type { HpackEncoder } from "../hpack/hpack-encoder.ts";
import { clientPreface, flag, frameBytes, frameHeaderBytes, frameType } from "./frame.ts";

const none = Buffer.alloc(0);
let scratch = Buffer.allocUnsafeSlow(largestOutputBytes);

/** `becameDirty` is called when the first frame since the last `take` is written. */
type FrameWriterOwner = { becameDirty(): void };

export class FrameWriter {
  readonly #owner: FrameWriterOwner;
  #isDirty = false;
  #out: Buffer = none;
  #at = 0;
  /**
   * Position and stream id of the last frame in the buffer, if it is a DATA frame to which more DATA can be added.
   * Otherwise the id is 0.
   */
  #dataAt = 0;
  #dataId = 0;
  #segments: Buffer[] = [];
  #lent: Buffer[] = [];
  /** Frames that are sent before all others of the same turn: PING, its acknowledgement, and the proxy's SETTINGS. */
  #urgent: Buffer[] | undefined;
  /** Ids of the streams whose RST_STREAM(NO_ERROR) is sent with the next turn's frames. */
  #stopped: number[] | undefined;

  constructor(owner: FrameWriterOwner) {
    this.#owner = owner;
  }

  take(): Buffer[] {
    this.#isDirty = false;
    this.#cut();
    if (this.#out !== none) giveBackOutput(this.#out);
    this.#out = none;
    const all = this.#urgent === undefined ? this.#segments : [...this.#urgent, ...this.#segments];
    this.#segments = [];
    this.#urgent = undefined;
    const stopped = this.#stopped;
    this.#stopped = undefined;
    for (const id of stopped ?? []) this.reset(id, errorCode.NO_ERROR);
    return all;
  }

  /**
   * Returns a function that puts the pooled buffers of the last `take` back into the pool; undefined: there are none.
   * Call this function only after the socket has written these buffers, or after they were copied.
   */
  release(): (() => void) | undefined {
    const lent = this.#lent;
    if (lent.length === 0) return undefined;
    this.#lent = [];
    return () => {
      for (const buffer of lent) giveBackOutput(buffer);
    };
  }

  preface(): void {
    this.#hurry(clientPreface);
  }

  settings(entries: readonly (readonly [id: number, value: number])[]): void {
    const frame = Buffer.alloc(frameHeaderBytes + 6 * entries.length);
    putFrameHeader(frame, 0, 6 * entries.length, frameType.SETTINGS, 0, 0);
    for (const [index, [id, value]] of entries.entries()) {
      putU16(frame, frameHeaderBytes + 6 * index, id);
      putU32(frame, frameHeaderBytes + 6 * index + 2, value);
    }
    this.#hurry(frame);
  }

  /**
   * Acknowledges the peer's SETTINGS. The acknowledgement follows the other frames of its turn, because those were
   * written under the previous settings (RFC 9113 §6.5.3).
   */
  settingsAcknowledgement(): void {
    this.#room(frameHeaderBytes);
    putFrameHeader(this.#out, this.#at, 0, frameType.SETTINGS, flag.ACK, 0);
    this.#at += frameHeaderBytes;
  }

  /** Writes a PING, or its acknowledgement, with the eight bytes of `payload` from `at` on. */
  ping(payload: Buffer, at: number, isAnswer: boolean): void {
    const frame = Buffer.alloc(frameHeaderBytes + 8);
    putFrameHeader(frame, 0, 8, frameType.PING, isAnswer ? flag.ACK : 0, 0);
    payload.copy(frame, frameHeaderBytes, at, at + 8);
    this.#hurry(frame);
  }

  windowUpdate(id: number, increment: number): void {
    this.#word(frameType.WINDOW_UPDATE, id, increment);
  }

  reset(id: number, code: number): void {
    this.#word(frameType.RST_STREAM, id, code);
  }

  /**
   * Sends RST_STREAM(NO_ERROR) one flush after the frames that are written already. If a client reads a whole response
   * and the reset at once, curl 7.88 reports a framing error instead of the response.
   */
  stopUpload(id: number): void {
    this.#touch();
    this.#stopped ??= [];
    this.#stopped.push(id);
  }

  #word(type: number, id: number, value: number): void {
    this.#room(13);
    putFrameHeader(this.#out, this.#at, 4, type, 0, id);
    putU32(this.#out, this.#at + 9, value);
    this.#at += 13;
  }

  goAway(lastId: number, code: number, debug: string): void {
    const text = Buffer.from(debug, "latin1");
    this.#room(frameHeaderBytes + 8 + text.length);
    putFrameHeader(this.#out, this.#at, 8 + text.length, frameType.GOAWAY, 0, 0);
    putU32(this.#out, this.#at + 9, lastId);
    putU32(this.#out, this.#at + 13, code);
    text.copy(this.#out, this.#at + 17);
    this.#at += 17 + text.length;
  }

  /** Writes a header block: a HEADERS frame, and CONTINUATION frames if the block is long. */
  headers(id: number, encoder: HpackEncoder, fields: readonly Field[], end: boolean): void {
    const bound = encoder.bound(fields);
    if (bound > frameBytes) return this.#longHeaders(id, encoder, fields, end);
    this.#room(frameHeaderBytes + bound);
    const start = this.#at + frameHeaderBytes;
    const after = encoder.encode(fields, this.#out, start);
    const flags = end ? flag.END_HEADERS | flag.END_STREAM : flag.END_HEADERS;
    putFrameHeader(this.#out, this.#at, after - start, frameType.HEADERS, flags, id);
    this.#at = after;
  }

  #longHeaders(id: number, encoder: HpackEncoder, fields: readonly Field[], end: boolean): void {
    const bound = encoder.bound(fields);
    if (scratch.length < bound) scratch = Buffer.allocUnsafeSlow(bound);
    const length = encoder.encode(fields, scratch, 0);
    for (let from = 0; from === 0 || from < length; from += frameBytes) {
      const to = Math.min(length, from + frameBytes);
      const last = to === length ? flag.END_HEADERS : 0;
      const type = from === 0 ? frameType.HEADERS : frameType.CONTINUATION;
      this.#room(frameHeaderBytes + to - from);
      putFrameHeader(
        this.#out,
        this.#at,
        to - from,
        type,
        from === 0 && end ? last | flag.END_STREAM : last,
        id,
      );
      scratch.copy(this.#out, this.#at + frameHeaderBytes, from, to);
      this.#at += frameHeaderBytes + to - from;
    }
  }

  endsWith(id: number): boolean {
    return this.#dataId === id;
  }

  /**
   * Writes DATA. Extends the last frame in the buffer if it is DATA of the same stream, so that tiny frames become one
   * (A16).
   */
  data(id: number, bytes: Buffer, start: number, end: number, endStream: boolean): void {
    const length = end - start;
    if (id === this.#dataId && this.#joins(bytes, start, end, endStream)) return;
    this.#room(frameHeaderBytes + length);
    this.#dataAt = this.#at;
    // A frame with END_STREAM is the last one of its stream, so no DATA may be added to it.
    if (!endStream) this.#dataId = id;
    putFrameHeader(this.#out, this.#at, length, frameType.DATA, endStream ? flag.END_STREAM : 0, id);
    bytes.copy(this.#out, this.#at + frameHeaderBytes, start, end);
    this.#at += frameHeaderBytes + length;
  }

  #joins(bytes: Buffer, start: number, end: number, endStream: boolean): boolean {
    const to = this.#at + end - start;
    const length = to - this.#dataAt - frameHeaderBytes;
    if (length > frameBytes || to > largestOutputBytes) return false;
    if (to > this.#out.length) this.#enlarge(to);
    bytes.copy(this.#out, this.#at, start, end);
    const flags = endStream ? flag.END_STREAM : 0;
    putFrameHeader(this.#out, this.#dataAt, length, frameType.DATA, flags, this.#dataId);
    this.#at = to;
    if (endStream) this.#dataId = 0;
    return true;
  }

  #cut(): void {
    const length = this.#at;
    if (length === 0) return;
    this.#at = 0;
    this.#dataId = 0;
    this.#segments = extended(this.#segments, this.#out.subarray(0, length));
    this.#lent = extended(this.#lent, this.#out);
    this.#out = none;
  }

  #room(count: number): void {
    this.#touch();
    this.#dataId = 0;
    const to = this.#at + count;
    if (to <= this.#out.length) return;
    if (to > largestOutputBytes) this.#cut();
    if (this.#out !== none) this.#enlarge(to);
    else this.#out = outputBuffer(count);
  }

  /** Moves the output to a buffer of at least `count` bytes. */
  #enlarge(count: number): void {
    const before = this.#out;
    this.#out = outputBuffer(count);
    before.copy(this.#out, 0, 0, this.#at);
    giveBackOutput(before);
  }

  #hurry(frame: Buffer): void {
    this.#touch();
    this.#urgent ??= [];
    this.#urgent.push(frame);
  }

  #touch(): void {
    if (this.#isDirty) return;
    this.#isDirty = true;
    this.#owner.becameDirty();
  }
}

/**
 * Returns the buffers with one more. A list of one buffer, the usual length, is created by a literal: the first `push`
 * would reserve room for 17.
 */
function extended(buffers: Buffer[], buffer: Buffer): Buffer[] {
  if (buffers.length === 0) return [buffer];
  buffers.push(buffer);
  return buffers;
}
