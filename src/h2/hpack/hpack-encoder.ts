/**
 * Fields into header blocks (RFC 7541 §6). A field that repeats costs one Map hit.
 *
 * What never enters the table: what Field.isNeverIndexed says, because upstream connections are shared between clients and the size
 * of a block would tell one of them whether it guessed another's value (RFC 7541 §7.1, as CRIME did); it goes out as
 * 'never indexed', so that no later hop does it either. And what will not come again: it would push out what does.
 *
 * Strings are written plain. Huffman code would save 19 of the 67 octets of a typical path for 165 ns, 192 of a
 * token's 896 for 2.9 µs, and cost the receiver two thirds of that again; an octet saved is worth 2 ns (TLS both ways).
 */

import { putLatin1 } from "../core/bytes.ts";
import { type Field, type Role, role } from "../core/field.ts";
import { h2Limits } from "../core/limits.ts";
import { DynamicTable, staticIndexByKey, staticIndexByName, staticTable } from "./hpack-table.ts";

/** The first octet of a representation: its pattern, and below it the bits in which its integer begins. */
const indexed = 0x80;
const literalIndexed = 0x40;
const sizeUpdate = 0x20;
const literalNeverIndexed = 0x10;
const literalNotIndexed = 0x00;

const onceRoles: readonly Role[] = [role.path, role.contentLength, role.auditId, role.forwardedFor];
/** By role: will such a value not come again? Asked of every field of every block, hence no Set. */
const isOnce: readonly boolean[] = Object.values(role).map((of: Role) => onceRoles.includes(of));

/** What a decoder's table holds at most before SETTINGS have said otherwise (RFC 9113 §6.5.2). */
const defaultTableBytes = 4096;
/** One size update, an integer of 32 bits. */
const updateBound = 6;

export class HpackEncoder {
  /** Field key -> number in the table. */
  readonly #numbers = new Map<string, number>();
  readonly #table = new DynamicTable(Math.min(defaultTableBytes, h2Limits.hpackTableBytes), (field) =>
    this.#numbers.delete(field.key),
  );
  /** The table's limit as the peer's decoder was told, and as large as it may become. */
  #toldBytes = this.#table.limitBytes;
  #wantedBytes = this.#table.limitBytes;

  /** The peer's SETTINGS_HEADER_TABLE_SIZE; told back at the start of the next block. */
  setPeerTableLimit(bytes: number): void {
    this.#wantedBytes = Math.min(bytes, h2Limits.hpackTableBytes);
    if (this.#wantedBytes < this.#table.limitBytes) this.#table.resize(this.#wantedBytes);
  }

  /** Upper bound of the octets encode() will write: the 32 of Field.size are more than any prefix needs. */
  bound(fields: readonly Field[]): number {
    let octets = updateBound;
    for (const field of fields) octets += field.size;
    return octets;
  }

  /** Writes the block from `out[at]` on, where bound() has room; returns the position after it. */
  encode(fields: readonly Field[], out: Buffer, at: number): number {
    let next = this.#tellLimit(out, at);
    for (const field of fields) next = this.#put(field, out, next);
    return next;
  }

  /**
   * Shrinks at once, to the smallest limit in between (§4.2), and grows a block later if it did: two updates in one
   * block are allowed, but golang.org/x/net refuses the second while its table holds anything.
   */
  #tellLimit(out: Buffer, at: number): number {
    if (this.#table.limitBytes === this.#toldBytes) this.#table.resize(this.#wantedBytes);
    if (this.#table.limitBytes === this.#toldBytes) return at;
    this.#toldBytes = this.#table.limitBytes;
    return putInteger(out, at, sizeUpdate, 0x1f, this.#toldBytes);
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

/** Differs from one request or client to the next, or is so large that it would empty half of the table. */
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

/** §5.1: in the bits of `mask` when it fits, else seven bits an octet, lowest first. */
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
