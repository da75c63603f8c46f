/**
 * Finds resourceVersion, name and namespace in the object of a protobuf event, which may arrive in pieces that are cut
 * anywhere. Uses only the lengths in the data, so user data is skipped and never read (watch.md §2.3). After its type,
 * an event has:
 *
 *   2 { 1 "k8s\0" { 1 kind  2 { 1 { 1 name  3 namespace  6 resourceVersion ... } ... }  3 encoding  4 content type } }
 */
import { isVersion } from "../../kube/resource-version.ts";

/** Placeholders in `layout`. Where `layout` has one, the event's bytes contain the length of the named part. */
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

/**
 * The values of `#step` after the whole `layout` was read. `atTag`: in a field's tag. `atVarint`: in a number.
 * `atLength`: in the length of a value.
 */
const atTag = layout.length;
const atVarint = atTag + 1;
const atLength = atTag + 2;
/**
 * `atEnd`: no more bytes need be read, because the metadata has ended or the version was found. `atFault`: the bytes
 * are invalid.
 */
const atEnd = atTag + 3;
const atFault = atTag + 4;

const field = { name: 1, namespace: 3, resourceVersion: 6 } as const;
const wire = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

/** A varint of 64 bits has at most ten bytes of seven bits, so the tenth byte is shifted by 63. */
const mostShift = 63;

export class ProtobufMetadata {
  readonly #keepsKeys: boolean;
  #step = 0;
  #bytesLeft = 0;
  /** The value of `#bytesLeft` at the end of the object or, within the metadata, at the end of the metadata. */
  #floor = 0;
  #varint = 0;
  #shift = 0;
  #valueBytesLeft = 0;
  #fieldNumber = 0;
  #valueText = "";
  version = "";
  name = "";
  namespace = "";

  constructor(keepsKeys: boolean) {
    this.#keepsKeys = keepsKeys;
  }

  /** True if the rest of this object need not be read. */
  get isOver(): boolean {
    return this.#step === atEnd;
  }

  /** Prepares for the next object. `left`: number of bytes until its event ends. */
  begin(left: number): void {
    this.#step = 0;
    this.#bytesLeft = left;
    this.#floor = 0;
    this.#valueBytesLeft = 0;
    this.#valueText = "";
    this.version = "";
    this.name = "";
    this.namespace = "";
  }

  /** Reads bytes[start, end). Returns the position that it reached; -1 if lengths and tags do not fit together. */
  walk(bytes: Buffer, start: number, end: number): number {
    let here = start;
    while (here < end && this.#step < atEnd) {
      if (this.#valueBytesLeft > 0) {
        here = this.#readValue(bytes, here, end);
        continue;
      }
      if (this.#step === atTag && this.#shift === 0) here = this.#passTexts(bytes, here, end);
      if (here === end) break;
      this.#bytesLeft--;
      this.#read(bytes[here++] ?? 0);
    }
    return this.#step === atFault ? -1 : here;
  }

  /**
   * Skips complete short strings that are not needed. Gives the same result as reading byte by byte, but is twice as
   * fast.
   */
  #passTexts(bytes: Buffer, start: number, end: number): number {
    const most = Math.min(end, start + this.#bytesLeft - this.#floor);
    let here = start;
    while (here + 1 < most) {
      const tag = bytes[here] ?? 0;
      const length = bytes[here + 1] ?? 0;
      const isPassed = tag % 8 === wire.bytes && tag < 0x80 && length < 0x80 && !this.#isWanted(tag >> 3);
      // Stops before the last field, because the end of the metadata is handled byte by byte.
      if (!isPassed || here + 2 + length >= most) break;
      here += 2 + length;
    }
    this.#bytesLeft -= here - start;
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

  #endLength(part: number, length: number): void {
    this.#step++;
    const left = this.#bytesLeft;
    // The part `rest` must end where the event ends. Every other part must end within the part that contains it.
    if (length > left - this.#floor || (part === lengthOf.rest && length < left)) this.#step = atFault;
    else if (part === lengthOf.kind) this.#valueBytesLeft = length;
    else if (part === lengthOf.object || part === lengthOf.metadata) this.#floor = left - length;
    if (this.#step === atTag) this.#endField();
  }

  #endNumber(number: number): void {
    if (this.#step === atTag) this.#beginField(number);
    else if (this.#step === atVarint) this.#endField();
    else if (number > this.#bytesLeft - this.#floor) this.#step = atFault;
    else this.#beginValue(number);
  }

  #beginField(tag: number): void {
    const type = tag % 8;
    this.#fieldNumber = type === wire.bytes ? (tag - type) / 8 : 0;
    if (type === wire.varint) this.#step = atVarint;
    else if (type === wire.bytes) this.#step = atLength;
    else if (type === wire.fixed64 || type === wire.fixed32)
      this.#valueBytesLeft = type === wire.fixed64 ? 8 : 4;
    else this.#step = atFault;
    if (this.#valueBytesLeft > this.#bytesLeft - this.#floor) this.#step = atFault;
  }

  #beginValue(length: number): void {
    if (!this.#isWanted(this.#fieldNumber)) this.#fieldNumber = 0;
    this.#valueBytesLeft = length;
    if (length === 0) this.#endField();
  }

  #readValue(bytes: Buffer, start: number, end: number): number {
    const stop = Math.min(end, start + this.#valueBytesLeft);
    this.#valueBytesLeft -= stop - start;
    this.#bytesLeft -= stop - start;
    if (this.#step < atTag) return stop;
    if (this.#fieldNumber !== 0) this.#valueText += bytes.toString("latin1", start, stop);
    if (this.#valueBytesLeft === 0) this.#endValue();
    return stop;
  }

  #endValue(): void {
    if (this.#fieldNumber === field.name) this.name = this.#valueText;
    else if (this.#fieldNumber === field.namespace) this.namespace = this.#valueText;
    if (this.#fieldNumber === field.resourceVersion) {
      this.version = isVersion(this.#valueText) ? this.#valueText : "";
      this.#step = atEnd;
    } else this.#endField();
    this.#valueText = "";
  }

  #endField(): void {
    this.#fieldNumber = 0;
    this.#step = this.#bytesLeft > this.#floor ? atTag : this.#bytesLeft === this.#floor ? atEnd : atFault;
  }
}
