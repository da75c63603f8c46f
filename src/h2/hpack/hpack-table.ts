import { Field } from "../core/field.ts";

/**
 * The static table (RFC 7541 appendix A) from index 1 on. Each line is a name, or a name and a value separated by a
 * space.
 */
const appendixA = [
  ":authority",
  ":method GET",
  ":method POST",
  ":path /",
  ":path /index.html",
  ":scheme http",
  ":scheme https",
  ":status 200",
  ":status 204",
  ":status 206",
  ":status 304",
  ":status 400",
  ":status 404",
  ":status 500",
  "accept-charset",
  "accept-encoding gzip, deflate",
  "accept-language",
  "accept-ranges",
  "accept",
  "access-control-allow-origin",
  "age",
  "allow",
  "authorization",
  "cache-control",
  "content-disposition",
  "content-encoding",
  "content-language",
  "content-length",
  "content-location",
  "content-range",
  "content-type",
  "cookie",
  "date",
  "etag",
  "expect",
  "expires",
  "from",
  "host",
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "if-unmodified-since",
  "last-modified",
  "link",
  "location",
  "max-forwards",
  "proxy-authenticate",
  "proxy-authorization",
  "range",
  "referer",
  "refresh",
  "retry-after",
  "server",
  "set-cookie",
  "strict-transport-security",
  "transfer-encoding",
  "user-agent",
  "vary",
  "via",
  "www-authenticate",
];

/**
 * The static table by HPACK index. Index 0 is unused. The dynamic table's indexes begin after the last index of the
 * static table.
 */
export const staticTable: readonly (Field | undefined)[] = [undefined, ...appendixA.map(fieldOf)];

function fieldOf(line: string): Field {
  const [name = "", ...words] = line.split(" ");
  return new Field(name, words.join(" "));
}

export const staticIndexByKey: ReadonlyMap<string, number> = firstIndexes((field) => field.key);
export const staticIndexByName: ReadonlyMap<string, number> = firstIndexes((field) => field.name);
for (const field of staticTable)
  if (field !== undefined) field.nameIndex = staticIndexByName.get(field.name) ?? 0;

function firstIndexes(wordOf: (field: Field) => string): Map<string, number> {
  const indexes = new Map<string, number>();
  for (const [index, field] of staticTable.entries()) {
    if (field === undefined) continue;
    if (!indexes.has(wordOf(field))) indexes.set(wordOf(field), index);
  }
  return indexes;
}

/** Initial number of slots in the ring, a power of two. Many clients' sessions never need more. */
const firstRoom = 8;

/**
 * The dynamic table, as a ring buffer. The ring grows as needed, so that the table of an idle session takes little
 * memory. An eviction moves no entry. Entries are numbered from 0 in the order of insertion and keep their numbers.
 */
export class DynamicTable {
  #ring: (Field | undefined)[] = Array.from({ length: firstRoom });
  #oldest = 0;
  #next = 0;
  #bytes = 0;
  #limitBytes: number;
  readonly #numberByKey: Pick<Map<string, number>, "delete"> | undefined;

  /** The table deletes the key of each evicted field from `numberByKey`. */
  constructor(limitBytes: number, numberByKey?: Pick<Map<string, number>, "delete">) {
    this.#limitBytes = limitBytes;
    this.#numberByKey = numberByKey;
  }

  get limitBytes(): number {
    return this.#limitBytes;
  }

  /** Sequence number of the oldest entry in the table. */
  get oldest(): number {
    return this.#oldest;
  }

  /** Sequence number that the next added entry will get. */
  get next(): number {
    return this.#next;
  }

  /** Returns the entry that is `back` positions older than the newest entry; undefined: there is none. */
  at(back: number): Field | undefined {
    const number = this.#next - 1 - back;
    return number < this.#oldest ? undefined : this.#ring[number & (this.#ring.length - 1)];
  }

  /**
   * Evicts the oldest entries until there is room, then adds the field. A field larger than the table empties the table
   * and is not added (§4.4).
   */
  add(field: Field): void {
    this.#evictDownTo(this.#limitBytes - field.size);
    if (field.size > this.#limitBytes) return;
    if (this.#next - this.#oldest === this.#ring.length) this.#grow();
    this.#ring[this.#next++ & (this.#ring.length - 1)] = field;
    this.#bytes += field.size;
  }

  resize(limitBytes: number): void {
    this.#limitBytes = limitBytes;
    this.#evictDownTo(limitBytes);
  }

  clear(): void {
    this.#evictDownTo(0);
  }

  #evictDownTo(bytes: number): void {
    while (this.#bytes > bytes && this.#oldest < this.#next) {
      const slot = this.#oldest++ & (this.#ring.length - 1);
      const field = this.#ring[slot];
      this.#ring[slot] = undefined;
      if (field === undefined) continue;
      this.#bytes -= field.size;
      this.#numberByKey?.delete(field.key);
    }
  }

  #grow(): void {
    const wider: (Field | undefined)[] = Array.from({ length: this.#ring.length * 2 });
    for (let number = this.#oldest; number < this.#next; number++)
      wider[number & (wider.length - 1)] = this.#ring[number & (this.#ring.length - 1)];
    this.#ring = wider;
  }
}
