/**
 * Finds resourceVersion, name and namespace in the object of a protobuf event, which may come in pieces that are cut
 * anywhere. Walks by lengths only: user data is skipped and never read (watch.md §2.3). What follows an event's type:
 *
 *   2 { 1 "k8s\0" { 1 kind  2 { 1 { 1 name  3 namespace  6 resourceVersion ... } ... }  3 encoding  4 content type } }
 */
import { isVersion } from "../../kube/resource-version.ts";

/** The part of the event that a length in `layout` measures. */
const lengthOf = { rest: -1, kind: -2, object: -3, metadata: -4 } as const;

/** The bytes of the event before the fields of the metadata: fixed values, and lengths (`lengthOf`). */
const layout: readonly number[] = [
  0x12,
  lengthOf.rest,
  0x0a,
  lengthOf.rest,
  ...Buffer.from("k8s\0"),
  0x0a,
  lengthOf.kind,
  0x12,
  lengthOf.object,
  0x0a,
  lengthOf.metadata,
];

/** Values of `#step` after the layout. */
const atTag = layout.length;
const atVarint = atTag + 1;
const atLength = atTag + 2;
/** Nothing more is needed: the metadata has ended, or its version was found. */
const atEnd = atTag + 3;
const atFault = atTag + 4;

const field = { name: 1, namespace: 3, resourceVersion: 6 } as const;
const wire = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

/** Largest shift of a byte of a varint: a varint of 64 bits has ten bytes of seven bits. */
const mostShift = 63;

export class ProtobufMetadata {
  readonly #keepsKeys: boolean;
  #step = 0;
  /** Number of unread bytes of the event, and how many of them lie behind the end of the object or the metadata. */
  #left = 0;
  #floor = 0;
  #varint = 0;
  #shift = 0;
  /** The current value: its unread bytes, its field's number, and its beginning if it was cut between two chunks. */
  #value = 0;
  #field = 0;
  #token = "";
  version = "";
  name = "";
  namespace = "";

  /** `keepsKeys`: true if name and namespace are needed, too. */
  constructor(keepsKeys: boolean) {
    this.#keepsKeys = keepsKeys;
  }

  /** True if the rest of this object need not be read. */
  get isOver(): boolean {
    return this.#step === atEnd;
  }

  /** Prepares for the next object, whose event continues for `left` bytes. */
  begin(left: number): void {
    this.#step = 0;
    this.#left = left;
    this.#floor = 0;
    this.#value = 0;
    this.#token = "";
    this.version = "";
    this.name = "";
    this.namespace = "";
  }

  /** Reads bytes[start, end). Returns the position that it reached; -1 if lengths and tags do not fit together. */
  walk(bytes: Buffer, start: number, end: number): number {
    let here = start;
    while (here < end && this.#step < atEnd) {
      if (this.#value > 0) {
        here = this.#readValue(bytes, here, end);
        continue;
      }
      if (this.#step === atTag && this.#shift === 0) here = this.#passTexts(bytes, here, end);
      if (here === end) break;
      this.#left--;
      this.#read(bytes[here++] ?? 0);
    }
    return this.#step === atFault ? -1 : here;
  }

  /** Skips complete short strings that are not needed, twice as fast as byte by byte, with the same result. */
  #passTexts(bytes: Buffer, start: number, end: number): number {
    const most = Math.min(end, start + this.#left - this.#floor);
    let here = start;
    while (here + 1 < most) {
      const tag = bytes[here] ?? 0;
      const length = bytes[here + 1] ?? 0;
      const isPassed = tag % 8 === wire.bytes && tag < 0x80 && length < 0x80 && !this.#isWanted(tag >> 3);
      // Stops before the last field, because the end of the metadata is handled byte by byte.
      if (!isPassed || here + 2 + length >= most) break;
      here += 2 + length;
    }
    this.#left -= here - start;
    return here;
  }

  #isWanted(number: number): boolean {
    return (
      number === field.resourceVersion ||
      (this.#keepsKeys && (number === field.name || number === field.namespace))
    );
  }

  #read(byte: number): void {
    const expected = layout[this.#step] ?? lengthOf.rest;
    if (expected >= 0) {
      this.#step = byte === expected ? this.#step + 1 : atFault;
      return;
    }
    if (byte >= 0x80 || this.#shift > 0) {
      this.#varint += (byte & 0x7f) * 2 ** this.#shift;
      this.#shift += 7;
      if (byte >= 0x80) {
        if (this.#shift > mostShift) this.#step = atFault;
        return;
      }
    } else this.#varint = byte;
    const number = this.#varint;
    this.#varint = 0;
    this.#shift = 0;
    if (this.#step < atTag) this.#endLength(expected, number);
    else this.#endNumber(number);
  }

  /** Handles a length in the layout. `of`: the part of the event that it measures (`lengthOf`). */
  #endLength(of: number, length: number): void {
    this.#step++;
    const left = this.#left;
    // A `rest` length must reach to the end of the event. Every other part must end within the part that contains it.
    if (length > left - this.#floor || (of === lengthOf.rest && length < left)) this.#step = atFault;
    else if (of === lengthOf.kind) this.#value = length;
    else if (of === lengthOf.object || of === lengthOf.metadata) this.#floor = left - length;
    if (this.#step === atTag) this.#endField();
  }

  /** Handles a number among the metadata's fields: a tag, a varint or a length. */
  #endNumber(number: number): void {
    if (this.#step === atTag) this.#beginField(number);
    else if (this.#step === atVarint) this.#endField();
    else if (number > this.#left - this.#floor) this.#step = atFault;
    else this.#beginValue(number);
  }

  #beginField(tag: number): void {
    const type = tag % 8;
    this.#field = type === wire.bytes ? (tag - type) / 8 : 0;
    if (type === wire.varint) this.#step = atVarint;
    else if (type === wire.bytes) this.#step = atLength;
    else if (type === wire.fixed64 || type === wire.fixed32) this.#value = type === wire.fixed64 ? 8 : 4;
    else this.#step = atFault;
    if (this.#value > this.#left - this.#floor) this.#step = atFault;
  }

  #beginValue(length: number): void {
    if (!this.#isWanted(this.#field)) this.#field = 0;
    this.#value = length;
    if (length === 0) this.#endField();
  }

  /** Reads more bytes of the current value, and keeps them if the value is needed. */
  #readValue(bytes: Buffer, start: number, end: number): number {
    const stop = Math.min(end, start + this.#value);
    this.#value -= stop - start;
    this.#left -= stop - start;
    if (this.#step < atTag) return stop;
    if (this.#field !== 0) this.#token += bytes.toString("latin1", start, stop);
    if (this.#value === 0) this.#endValue();
    return stop;
  }

  #endValue(): void {
    if (this.#field === field.name) this.name = this.#token;
    else if (this.#field === field.namespace) this.namespace = this.#token;
    if (this.#field === field.resourceVersion) {
      this.version = isVersion(this.#token) ? this.#token : "";
      this.#step = atEnd;
    } else this.#endField();
    this.#token = "";
  }

  #endField(): void {
    this.#field = 0;
    this.#step = this.#left > this.#floor ? atTag : this.#left === this.#floor ? atEnd : atFault;
  }
}
