/**
 * Frames in, buffers out, once per loop turn. Small frames are copied into one pooled buffer; DATA above two
 * kilobytes goes out in the chunk that it came in, its nine header octets written into the room before it. Batching
 * a turn's frames into one write (one TLS record, one system call) is worth a quarter of the whole cost.
 */
import { putFrameHeader, putU16, putU32 } from "./bytes.ts";
import type { Field } from "./field.ts";
import { clientPreface, flag, frameBytes, frameHeaderBytes, frameType } from "./frame.ts";
import type { HpackEncoder } from "./hpack-encoder.ts";

/** Below this a copy is cheaper than one more buffer in the write. */
const copyBytes = 2048;
const poolBufferBytes = 32_768;
/** Sessions that write in one turn seldom pass this; what is above it is left to the collector. */
const pooledBuffers = 64;

const pool: Buffer[] = [];
const none = Buffer.alloc(0);
let scratch = Buffer.allocUnsafeSlow(poolBufferBytes);

export class FrameWriter {
  readonly #becameDirty: () => void;
  #isDirty = false;
  #out: Buffer = none;
  #at = 0;
  #segments: Buffer[] = [];
  /** PING, its answer and our SETTINGS: written before everything else of their turn (reliability rule 8). */
  #urgent: Buffer[] = [];

  constructor(becameDirty: () => void) {
    this.#becameDirty = becameDirty;
  }

  /** What this turn has to write, in order; the writer is empty afterwards. */
  take(): Buffer[] {
    this.#isDirty = false;
    this.#cut();
    if (this.#out !== none && pool.length < pooledBuffers) pool.push(this.#out);
    this.#out = none;
    const all = this.#urgent.length === 0 ? this.#segments : [...this.#urgent, ...this.#segments];
    this.#segments = [];
    this.#urgent = [];
    return all;
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

  /** In its place: what this turn wrote before it still kept to the settings of before (RFC 9113 §6.5.3). */
  settingsAcknowledgement(): void {
    this.#room(frameHeaderBytes);
    putFrameHeader(this.#out, this.#at, 0, frameType.SETTINGS, flag.ACK, 0);
    this.#at += frameHeaderBytes;
  }

  /** `payload` holds the eight octets at `at`. */
  ping(payload: Buffer, at: number, isAnswer: boolean): void {
    const frame = Buffer.alloc(frameHeaderBytes + 8);
    putFrameHeader(frame, 0, 8, frameType.PING, isAnswer ? flag.ACK : 0, 0);
    payload.copy(frame, frameHeaderBytes, at, at + 8);
    this.#hurry(frame);
  }

  windowUpdate(id: number, increment: number): void {
    this.#room(13);
    putFrameHeader(this.#out, this.#at, 4, frameType.WINDOW_UPDATE, 0, id);
    putU32(this.#out, this.#at + 9, increment);
    this.#at += 13;
  }

  reset(id: number, code: number): void {
    this.#room(13);
    putFrameHeader(this.#out, this.#at, 4, frameType.RST_STREAM, 0, id);
    putU32(this.#out, this.#at + 9, code);
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

  /** One header block; its end decides how many CONTINUATION frames it takes. */
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

  /** At most `frameBytes` at once. With `hasRoom` the nine octets before `start` are overwritten. */
  data(id: number, bytes: Buffer, start: number, end: number, endStream: boolean, hasRoom: boolean): void {
    const length = end - start;
    const flags = endStream ? flag.END_STREAM : 0;
    if (length > copyBytes && hasRoom) {
      putFrameHeader(bytes, start - frameHeaderBytes, length, frameType.DATA, flags, id);
      this.#pass(bytes, start - frameHeaderBytes, end);
      return;
    }
    this.#room(frameHeaderBytes + (length > copyBytes ? 0 : length));
    putFrameHeader(this.#out, this.#at, length, frameType.DATA, flags, id);
    this.#at += frameHeaderBytes;
    if (length > copyBytes) {
      this.#pass(bytes, start, end);
    } else {
      bytes.copy(this.#out, this.#at, start, end);
      this.#at += length;
    }
  }

  /** Octets that go out where they lie; neighbours in one chunk become one segment. */
  #pass(bytes: Buffer, start: number, end: number): void {
    this.#touch();
    const isAlone = this.#at === 0;
    this.#cut();
    const index = this.#segments.length - 1;
    const last = this.#segments[index];
    // Side by side in memory is not enough: two small buffers may be neighbours in Node's pool.
    const continues =
      isAlone &&
      last?.buffer === bytes.buffer &&
      last.length <= start &&
      last.byteOffset + last.length === bytes.byteOffset + start;
    if (continues) {
      // The two lie side by side in one chunk, so the chunk gives both at once.
      this.#segments[index] = bytes.subarray(start - last.length, end);
    } else {
      this.#segments.push(bytes.subarray(start, end));
    }
  }

  /** What lies in the pooled buffer becomes a segment of its own, so that the buffer can be used again. */
  #cut(): void {
    if (this.#at === 0) return;
    this.#segments.push(Buffer.from(this.#out.subarray(0, this.#at)));
    this.#at = 0;
  }

  #room(count: number): void {
    this.#touch();
    if (this.#out === none) this.#out = pool.pop() ?? Buffer.allocUnsafeSlow(poolBufferBytes);
    if (this.#at + count > this.#out.length) this.#cut();
  }

  #hurry(frame: Buffer): void {
    this.#touch();
    this.#urgent.push(frame);
  }

  #touch(): void {
    if (this.#isDirty) return;
    this.#isDirty = true;
    this.#becameDirty();
  }
}
