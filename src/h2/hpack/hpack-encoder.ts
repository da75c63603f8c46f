/**
 * Encodes fields into header blocks (RFC 7541 §6). A repeated field costs one Map lookup.
 *
 * Two kinds of fields never enter the table. Fields with Field.isNeverIndexed: upstream connections are shared between
 * clients, and a block's size would reveal to one client whether it guessed another's value (RFC 7541 §7.1, as CRIME
 * did). They are sent as 'never indexed', so that no later hop indexes them. And fields that will not repeat: they
 * would evict those that do.
 *
 * Strings are sent without Huffman coding. It would save 19 of the 67 bytes of a typical path for 165 ns, and 192 of a
 * token's 896 bytes for 2.9 µs, and cost the receiver two thirds of that again; a saved byte is worth 2 ns (TLS both
 * ways).
 */

import { putLatin1 } from "../core/bytes.ts";
import { type Field, type Role, role } from "../core/field.ts";
import { h2Limits } from "../core/limits.ts";
import { DynamicTable, staticIndexByKey, staticIndexByName, staticTable } from "./hpack-table.ts";

/** The first byte of a representation: its pattern; its integer begins in the bits below. */
const indexed = 0x80;
const literalIndexed = 0x40;
const sizeUpdate = 0x20;
const literalNeverIndexed = 0x10;
const literalNotIndexed = 0x00;

const onceRoles: readonly Role[] = [role.path, role.contentLength, role.auditId, role.forwardedFor];
/** By role: true if such a value will not repeat. Read for every field of every block, hence not a Set. */
const isOnce: readonly boolean[] = Object.values(role).map((of: Role) => onceRoles.includes(of));

/** Size of a decoder's table until its SETTINGS arrive (RFC 9113 §6.5.2). */
const defaultTableBytes = 4096;
/** Bytes of one size update with a 32-bit integer. */
const updateBound = 6;

export class HpackEncoder {
  /** Field key -> number in the table. */
  readonly #numbers = new Map<string, number>();
  readonly #table = new DynamicTable(Math.min(defaultTableBytes, h2Limits.hpackTableBytes), (field) =>
    this.#numbers.delete(field.key),
  );
  /** The table limit last announced to the peer's decoder, and the largest allowed. */
  #announcedBytes = this.#table.limitBytes;
  #wantedBytes = this.#table.limitBytes;

  /** Applies the peer's SETTINGS_HEADER_TABLE_SIZE; the next block announces the new size. */
  setPeerTableLimit(bytes: number): void {
    this.#wantedBytes = Math.min(bytes, h2Limits.hpackTableBytes);
    if (this.#wantedBytes < this.#table.limitBytes) this.#table.resize(this.#wantedBytes);
  }

  /** Returns an upper bound of the bytes that encode() writes: the 32 in Field.size exceed any prefix. */
  bound(fields: readonly Field[]): number {
    let bytes = updateBound;
    for (const field of fields) bytes += field.size;
    return bytes;
  }

  /** Writes the block from `out[at]` on, where bound() bytes must fit. Returns the position after it. */
  encode(fields: readonly Field[], out: Buffer, at: number): number {
    let next = this.#announceLimit(out, at);
    for (const field of fields) next = this.#put(field, out, next);
    return next;
  }

  /**
   * Shrinks immediately, to the smallest limit since the last block (§4.2), and grows one block later. Two updates in
   * one block are allowed, but golang.org/x/net rejects the second while its table is not empty.
   */
  #announceLimit(out: Buffer, at: number): number {
    if (this.#table.limitBytes === this.#announcedBytes) this.#table.resize(this.#wantedBytes);
    if (this.#table.limitBytes === this.#announcedBytes) return at;
    this.#announcedBytes = this.#table.limitBytes;
    return putInteger(out, at, sizeUpdate, 0x1f, this.#announcedBytes);
  }

  #put(field: Field, out: Buffer, at: number): number {
    if (field.isNeverIndexed) return putLiteral(field, out, at, literalNeverIndexed, 0x0f);
    if (comesOnce(field)) return putLiteral(field, out, at, literalNotIndexed, 0x0f);
    const number = this.#numbers.get(field.key);
    if (number !== undefined)
      return putInteger(out, at, indexed, 0x7f, staticTable.length + this.#table.next - 1 - number);
    const index = staticIndexByKey.get(field.key);
    if (index !== undefined) return putInteger(out, at, indexed, 0x7f, index);
    if (field.size > this.#table.limitBytes) return putLiteral(field, out, at, literalNotIndexed, 0x0f);
    this.#numbers.set(field.key, this.#table.next);
    this.#table.add(field);
    return putLiteral(field, out, at, literalIndexed, 0x3f);
  }
}

/** True if the field differs between requests or clients, or is so large that it would evict half of the table. */
function comesOnce(field: Field): boolean {
  return isOnce[field.role] === true || field.size > h2Limits.hpackIndexedBytes;
}

function putLiteral(field: Field, out: Buffer, at: number, pattern: number, mask: number): number {
  const index = staticIndexByName.get(field.name) ?? 0;
  const next = putInteger(out, at, pattern, mask, index);
  return putString(out, index === 0 ? putString(out, next, field.name) : next, field.value);
}

function putString(out: Buffer, at: number, text: string): number {
  const next = putInteger(out, at, 0, 0x7f, text.length);
  return putLatin1(out, next, text);
}

/** §5.1: in the bits of `mask` if it fits, else seven bits per byte, lowest first. */
function putInteger(out: Buffer, at: number, pattern: number, mask: number, value: number): number {
  if (value < mask) {
    out[at] = pattern | value;
    return at + 1;
  }
  out[at] = pattern | mask;
  let next = at + 1;
  let rest = value - mask;
  for (; rest >= 0x80; rest >>>= 7) out[next++] = rest | 0x80;
  out[next] = rest;
  return next + 1;
}
