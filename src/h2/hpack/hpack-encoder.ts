/**
 * Encodes fields into header blocks (RFC 7541 §6). A repeated field costs at most two Map lookups.
 *
 * Two kinds of fields never enter the table. The first are credentials and identities (`Field.isNeverIndexed`): clients
 * share upstream connections, and the size of a block would reveal to a client whether it has guessed another client's
 * value (RFC 7541 §7.1, as in CRIME). These fields are sent as 'never indexed', so that no later hop indexes them. The
 * second are fields that do not repeat: in the table, they would replace fields that repeat.
 *
 * Strings are sent without Huffman coding, because it costs more time than it saves. It would save 19 of the 67 bytes
 * of a typical path in 165 ns, and 192 of the 896 bytes of a token in 2.9 µs; decoding takes another two thirds of that
 * time. Sending a byte costs 2 ns, including TLS at both ends.
 */

import { putLatin1 } from "../core/bytes.ts";
import { type Field, type Role, role } from "../core/field.ts";
import { h2Limits } from "../core/limits.ts";
import { DynamicTable, staticIndexByKey, staticIndexByName, staticTable } from "./hpack-table.ts";

/** Bit patterns of a field's first byte (RFC 7541 §6). An integer begins in the bits below the pattern. */
const indexed = 0x80;
const literalIndexed = 0x40;
const sizeUpdate = 0x20;
const literalNeverIndexed = 0x10;
const literalNotIndexed = 0x00;

const onceRoles: readonly Role[] = [
  role.path,
  role.contentLength,
  role.auditId,
  role.forwardedFor,
  role.traceParent,
];
/**
 * True for each role whose values rarely repeat. Fields with such a role do not enter the table. This is an array
 * indexed by role, because it is read for every field.
 */
const isOnce: readonly boolean[] = Object.values(role).map((of: Role) => onceRoles.includes(of));

/** Table size in bytes that the peer's decoder has before its SETTINGS arrive (RFC 9113 §6.5.2). */
const defaultTableBytes = 4096;
const updateBound = 6;

/**
 * Number of fields that an encoder finds without a Map lookup; a power of two. A client's session needs 16, because
 * responses of an apiserver repeat about as many. An upstream connection needs 512, because it carries the requests of
 * many clients. An upstream connection for watches needs only 16, because it seldom carries a new request.
 */
const rememberedFields = 16;
export const rememberedFieldsOfMany = 512;

export class HpackEncoder {
  /** The fields that were found in a table most recently, indexed by the lowest bits of their ids. */
  readonly #remembered: (Field | undefined)[] = [];
  /**
   * For each field in `#remembered`: its sequence number in the dynamic table, or the negated index of its entry in the
   * static table.
   */
  readonly #rememberedNumbers: number[] = [];
  readonly #idMask: number;
  readonly #numberByKey = new Map<string, number>();
  readonly #table = new DynamicTable(
    Math.min(defaultTableBytes, h2Limits.hpackTableBytes),
    this.#numberByKey,
  );
  #announcedTableBytes = this.#table.limitBytes;
  #wantedTableBytes = this.#table.limitBytes;

  constructor(remembered: number = rememberedFields) {
    this.#idMask = remembered - 1;
  }

  /** Applies the peer's SETTINGS_HEADER_TABLE_SIZE; the next block announces the new size. */
  setPeerTableLimit(bytes: number): void {
    this.#wantedTableBytes = Math.min(bytes, h2Limits.hpackTableBytes);
    if (this.#wantedTableBytes < this.#table.limitBytes) this.#table.resize(this.#wantedTableBytes);
  }

  /**
   * Returns an upper bound for the number of bytes that encode() writes: the sum of the fields' sizes, and the table
   * size updates. Each `size` includes 32 extra bytes, which are more than the length prefixes of a field take.
   */
  bound(fields: readonly Field[]): number {
    let bytes = updateBound;
    for (const field of fields) bytes += field.size;
    return bytes;
  }

  /** Writes the header block to `out` from `at` on, where bound() bytes must fit. Returns the end position. */
  encode(fields: readonly Field[], out: Buffer, at: number): number {
    let next = this.#announceLimit(out, at);
    for (const field of fields) next = this.#put(field, out, next);
    return next;
  }

  /**
   * Announces a changed table limit. If the limit was lowered and raised since the last block, this block announces the
   * smaller limit (§4.2) and the next block the larger limit, because golang.org/x/net rejects two updates in one block
   * while its table is not empty.
   */
  #announceLimit(out: Buffer, at: number): number {
    if (this.#table.limitBytes === this.#announcedTableBytes) this.#table.resize(this.#wantedTableBytes);
    if (this.#table.limitBytes === this.#announcedTableBytes) return at;
    this.#announcedTableBytes = this.#table.limitBytes;
    return putInteger(out, at, sizeUpdate, 0x1f, this.#announcedTableBytes);
  }

  #put(field: Field, out: Buffer, at: number): number {
    if (field.isNeverIndexed) return putLiteral(field, out, at, literalNeverIndexed, 0x0f);
    if (comesOnce(field)) return putLiteral(field, out, at, literalNotIndexed, 0x0f);
    const slot = field.id & this.#idMask;
    if (this.#remembered[slot] === field) {
      const known = this.#rememberedNumbers[slot] ?? 0;
      if (known < 0) return putInteger(out, at, indexed, 0x7f, -known);
      if (known >= this.#table.oldest) return this.#putNumber(known, out, at);
    }
    const number = this.#numberByKey.get(field.key);
    if (number !== undefined) {
      this.#remember(slot, field, number);
      return this.#putNumber(number, out, at);
    }
    const index = staticIndexByKey.get(field.key);
    if (index !== undefined) {
      this.#remember(slot, field, -index);
      return putInteger(out, at, indexed, 0x7f, index);
    }
    if (field.size > this.#table.limitBytes) return putLiteral(field, out, at, literalNotIndexed, 0x0f);
    this.#numberByKey.set(field.key, this.#table.next);
    this.#table.add(field);
    return putLiteral(field, out, at, literalIndexed, 0x3f);
  }

  #putNumber(number: number, out: Buffer, at: number): number {
    return putInteger(out, at, indexed, 0x7f, staticTable.length + this.#table.next - 1 - number);
  }

  #remember(slot: number, field: Field, number: number): void {
    // Fills the slots before this one, because V8 stores an array with gaps as a hash table.
    while (this.#remembered.length <= slot) {
      this.#remembered.push(undefined);
      this.#rememberedNumbers.push(0);
    }
    this.#remembered[slot] = field;
    this.#rememberedNumbers[slot] = number;
  }
}

/** True if the field differs between requests or clients, or would evict half of the table. */
function comesOnce(field: Field): boolean {
  return isOnce[field.role] === true || field.size > h2Limits.hpackIndexedBytes;
}

function putLiteral(field: Field, out: Buffer, at: number, pattern: number, mask: number): number {
  if (field.nameIndex < 0) field.nameIndex = staticIndexByName.get(field.name) ?? 0;
  const index = field.nameIndex;
  const next = putInteger(out, at, pattern, mask, index);
  return putString(out, index === 0 ? putString(out, next, field.name) : next, field.value);
}

function putString(out: Buffer, at: number, text: string): number {
  const next = putInteger(out, at, 0, 0x7f, text.length);
  return putLatin1(out, next, text);
}

/**
 * Writes an integer (§5.1). A value that does not fit into the bits of `mask` continues in the following bytes, seven
 * bits in each, lowest bits first.
 */
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
