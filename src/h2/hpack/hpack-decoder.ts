/**
 * Decodes header blocks into fields (RFC 7541 §3). An error ends the session, because after it the decoder's table
 * would differ from the peer's. A header list that is too large (an HPACK bomb, A7) is cut, and `isOversize` is set:
 * session/streams.ts then answers a request with 431, and resets the stream of a response or of trailers. The block is
 * still decoded to the end, so that both tables stay equal. A backend's block that is too long to be kept is decoded in
 * parts (`skip`).
 */
import { limits } from "../../base/limits.ts";
import { holds, latin1, u8 } from "../core/bytes.ts";
import { Field } from "../core/field.ts";
import { h2Limits } from "../core/limits.ts";
import { errorCode, ProtocolError } from "../core/protocol-error.ts";
import { DynamicTable, staticTable } from "./hpack-table.ts";
import { decodedBound, huffmanDecode } from "./huffman.ts";
import { sharedField } from "./shared-fields.ts";

/** Number of bytes that count as part of a table entry in addition to its name and value (RFC 7541 §4.1). */
const entryOverhead = 32;
/**
 * Maximum number of bytes that may follow the prefix of an integer. They hold 28 bits, which V8 can store as a small
 * integer (A9).
 */
const maxContinuationBytes = 4;

/** Number of bits in the longest Huffman code. */
const mostBitsPerByte = 30;

/** Thrown while a block is decoded in parts, if the end of the part cuts a field. */
const cutField = new Error("The part of a header block ends inside a field");

/** Buffer for decoded Huffman codes. All decoders share it, because no decode() runs inside another. */
const scratch = Buffer.allocUnsafeSlow(decodedBound(h2Limits.headerBlockBytes));

function compressionError(message: string): ProtocolError {
  return new ProtocolError(errorCode.COMPRESSION_ERROR, "session", message);
}

export class HpackDecoder {
  /** True if the last decode() cut the list, because the list or one field exceeded its limit. */
  isOversize = false;
  readonly #table: DynamicTable;
  readonly #advertisedBytes: number;
  #lastSecret: { readonly encoded: Buffer; readonly field: Field } | undefined;
  #at = 0;
  #sizeUpdates = 0;
  #listBytes = 0;
  #listFields = 0;
  /** True while a block is decoded in parts. */
  #isSkipping = false;
  /** True if the next bytes of a block that is decoded in parts are the value of a field whose name was skipped. */
  #isValueNext = false;

  /** `tableBytes`: the size of the table that was advertised in SETTINGS_HEADER_TABLE_SIZE. */
  constructor(tableBytes: number = h2Limits.hpackTableBytes) {
    this.#table = new DynamicTable(tableBytes);
    this.#advertisedBytes = tableBytes;
  }

  /** Size in bytes of the last block's header list, as RFC 7541 §4.1 counts it. */
  get listBytes(): number {
    return this.#listBytes;
  }

  get listFields(): number {
    return this.#listFields;
  }

  /**
   * Returns the fields of the complete block `bytes[start, end)`, or of a block's last part (see `skip`). An invalid
   * block ends the session.
   */
  decode(bytes: Buffer, start: number, end: number): Field[] {
    const list: Field[] = [];
    if (!this.#isSkipping) this.#begin(start);
    else if (start < end || this.#isValueNext) throw compressionError("Block ends inside a field");
    this.#isSkipping = false;
    while (this.#at < end) this.#readField(bytes, end, list);
    return list;
  }

  /**
   * Decodes a part of a block that is too long to be kept. Only the table keeps anything of it. Returns the position
   * in `bytes` at which the next part begins: at the field that the end of `bytes` cuts, or beyond the end, if the rest
   * of a string needs no decoding. What is cut is at most 31 KiB long.
   */
  skip(bytes: Buffer): number {
    if (!this.#isSkipping) this.#begin(0);
    this.#at = 0;
    this.#isSkipping = true;
    this.isOversize = true;
    while (this.#at < bytes.length) {
      const from = this.#at;
      const counted = { bytes: this.#listBytes, fields: this.#listFields };
      try {
        if (this.#isValueNext) this.#readString(bytes, bytes.length, false);
        else this.#readField(bytes, bytes.length, []);
      } catch (error) {
        if (error !== cutField) throw error;
        this.#listBytes = counted.bytes;
        this.#listFields = counted.fields;
        return from;
      }
    }
    return this.#at;
  }

  #begin(start: number): void {
    this.isOversize = false;
    this.#at = start;
    this.#sizeUpdates = 0;
    this.#listBytes = 0;
    this.#listFields = 0;
  }

  #readField(bytes: Buffer, end: number, list: Field[]): void {
    const first = u8(bytes, this.#at);
    if (first >= 0x80) this.#readIndexed(bytes, end, list);
    else if (first >= 0x40) this.#readLiteral(bytes, end, 0x3f, list);
    else if (first >= 0x20) this.#readSizeUpdate(bytes, end);
    else if (first >= 0x10) this.#readNeverIndexed(bytes, end, list);
    else this.#readLiteral(bytes, end, 0x0f, list);
  }

  #readIndexed(bytes: Buffer, end: number, list: Field[]): void {
    const field = this.#entry(this.#readInteger(bytes, end, 0x7f));
    this.#count(field.size);
    if (!this.isOversize) list.push(field);
  }

  /**
   * Reads a never-indexed field. If its bytes are the same as last time, returns the previous Field: clients that do
   * not index credentials (nghttp2, Rust's h2) send the whole token with each request, and decoding it each time would
   * be expensive.
   */
  #readNeverIndexed(bytes: Buffer, end: number, list: Field[]): void {
    const start = this.#at;
    const last = this.#lastSecret;
    if (last !== undefined && holds(bytes, start, end, last.encoded)) {
      this.#at += last.encoded.length;
      this.#count(last.field.size);
      if (!this.isOversize) list.push(last.field);
      return;
    }
    const index = this.#readInteger(bytes, end, 0x0f);
    this.#at = start;
    this.#readLiteral(bytes, end, 0x0f, list);
    const field = list.at(-1);
    // The field is not remembered if its name is in the dynamic table: in the next block, the index may mean another
    // name.
    const isLasting =
      index > 0 && index < staticTable.length && this.#at - start <= h2Limits.hpackIndexedBytes;
    if (field === undefined || this.isOversize || !isLasting) return;
    // Allocated outside of Node's pool: a pooled slice would keep 64 KiB in memory as long as the session exists.
    const encoded = Buffer.allocUnsafeSlow(this.#at - start);
    bytes.copy(encoded, 0, start, this.#at);
    this.#lastSecret = { encoded, field };
  }

  /**
   * Reads a literal field. `prefix`: mask of those bits in the first byte that hold the name's index. If the mask is
   * 0x3f, the field enters the table.
   */
  #readLiteral(bytes: Buffer, end: number, prefix: number, list: Field[]): void {
    const goesToTable = prefix === 0x3f;
    const isNeverIndexed = (u8(bytes, this.#at) & 0xf0) === 0x10;
    const index = this.#readInteger(bytes, end, prefix);
    const known = index === 0 ? undefined : this.#entry(index);
    this.#count(entryOverhead + (known === undefined ? 0 : known.name.length));
    const name = known === undefined ? this.#readString(bytes, end, goesToTable) : known.name;
    if (name === undefined) {
      this.#isValueNext = true;
      return;
    }
    const value = this.#readString(bytes, end, goesToTable);
    if (value === undefined || (this.isOversize && !goesToTable)) return;
    const own = new Field(name, value, isNeverIndexed, known);
    const field = goesToTable ? this.#added(sharedField(own)) : own;
    if (!this.isOversize) list.push(field);
  }

  #added(field: Field): Field {
    this.#table.add(field);
    return field;
  }

  #readSizeUpdate(bytes: Buffer, end: number): void {
    if (this.#listFields > 0) throw compressionError("Table size update after a field");
    const tableBytes = this.#readInteger(bytes, end, 0x1f);
    if (++this.#sizeUpdates > h2Limits.hpackSizeUpdates)
      throw compressionError(`More than ${h2Limits.hpackSizeUpdates} table size updates in a block`);
    if (tableBytes > this.#advertisedBytes)
      throw compressionError(`Table size update beyond the ${this.#advertisedBytes} bytes advertised`);
    this.#table.resize(tableBytes);
  }

  #entry(index: number): Field {
    const length = staticTable.length;
    const field = index < length ? staticTable[index] : this.#table.at(index - length);
    if (field === undefined) throw compressionError("No table entry has this index");
    return field;
  }

  /** Reads an integer (RFC 7541 §5.1). It begins in those bits of the current byte that `prefix` masks. */
  #readInteger(bytes: Buffer, end: number, prefix: number): number {
    let value = u8(bytes, this.#at++) & prefix;
    if (value < prefix) return value;
    const first = this.#at;
    for (let shift = 0; this.#at < end; shift += 7) {
      if (this.#at - first === maxContinuationBytes) throw compressionError("Integer too long");
      const byte = u8(bytes, this.#at++);
      value += (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw this.#endsIn("an integer");
  }

  /**
   * Reads a string (RFC 7541 §5.2). Once the list has exceeded a limit, returns "" for strings that do not enter the
   * table, but still validates their Huffman codes. If the block is decoded in parts, returns undefined for such strings
   * instead, and skips them.
   */
  #readString(bytes: Buffer, end: number, goesToTable: boolean): string | undefined {
    if (this.#at >= end) throw this.#endsIn("a field");
    const isHuffman = u8(bytes, this.#at) >= 0x80;
    const length = this.#readInteger(bytes, end, 0x7f);
    const start = this.#at;
    if (this.#passes(length, goesToTable)) return undefined;
    this.#at += length;
    if (this.#at > end) throw this.#endsIn("a string");
    const decoded = isHuffman ? this.#decodeHuffman(bytes, start) : length;
    this.#listBytes += decoded;
    if (this.#listBytes > limits.headerListBytes || decoded > limits.fieldBytes) this.isOversize = true;
    if (this.isOversize && !goesToTable) return "";
    return isHuffman ? latin1(scratch, 0, decoded) : latin1(bytes, start, this.#at);
  }

  /**
   * Skips the next `length` bytes of a block that is decoded in parts, and returns true, if they are a string that does
   * not fit into the table (§4.4).
   */
  #passes(length: number, goesToTable: boolean): boolean {
    if (!this.#isSkipping) return false;
    if (goesToTable && length * 8 <= this.#advertisedBytes * mostBitsPerByte) return false;
    if (goesToTable) this.#table.clear();
    this.#isValueNext = false;
    this.#listBytes += length;
    this.#at += length;
    return true;
  }

  #endsIn(what: string): Error {
    return this.#isSkipping ? cutField : compressionError(`Block ends inside ${what}`);
  }

  #decodeHuffman(bytes: Buffer, start: number): number {
    if (decodedBound(this.#at - start) > scratch.length) throw compressionError("String longer than a block");
    const length = huffmanDecode(bytes, start, this.#at, scratch);
    if (length < 0) throw compressionError("Invalid Huffman code");
    return length;
  }

  #count(bytes: number): void {
    this.#listBytes += bytes;
    this.#listFields++;
    if (this.#listBytes > limits.headerListBytes) this.isOversize = true;
  }
}
