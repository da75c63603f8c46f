/**
 * Converts CBOR (RFC 8949) to a text that is equal for equal values. The apiserver writes the keys of a map in random
 * order (FastShuffle of fxamacker/cbor), so the text has them sorted; the order of arrays is kept. Half-precision
 * floats are not supported, because the apiserver does not write them.
 */

/** Major types of RFC 8949 §3.1. */
const major = { unsigned: 0, negative: 1, bytes: 2, text: 3, array: 4, map: 5, tag: 6, simple: 7 } as const;
const breakByte = 0xff;
/** The additional information that means an indefinite length. */
const indefinite = 31;

class Reader {
  readonly #bytes: Buffer;
  at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtBreak(): boolean {
    return this.#bytes[this.at] === breakByte;
  }

  get isAtEnd(): boolean {
    return this.at >= this.#bytes.length;
  }

  byte(): number {
    const value = this.#bytes[this.at];
    if (value === undefined) throw new Error(`CBOR ends at ${this.at}`);
    this.at += 1;
    return value;
  }

  take(length: number): Buffer {
    const taken = this.#bytes.subarray(this.at, this.at + length);
    if (taken.length < length) throw new Error(`CBOR ends at ${this.at}`);
    this.at += length;
    return taken;
  }

  /** Returns the argument of a data item whose additional information is at most 27. */
  argument(info: number): bigint {
    if (info < 24) return BigInt(info);
    if (info > 27) throw new Error(`CBOR with additional information ${info} at ${this.at}`);
    return BigInt(`0x${this.take(2 ** (info - 24)).toString("hex")}`);
  }
}

export function canonical(cbor: Buffer): string {
  const reader = new Reader(cbor);
  const text = item(reader);
  if (!reader.isAtEnd) throw new Error(`CBOR goes on after its end at ${reader.at}`);
  return text;
}

function item(reader: Reader): string {
  const initial = reader.byte();
  const [type, info] = [initial >> 5, initial & 31];
  if (type === major.bytes || type === major.text)
    return `${type}:${JSON.stringify(string(reader, type, info))}`;
  if (type === major.array) return `[${items(reader, info, () => item(reader)).join(",")}]`;
  if (type === major.map) {
    const entries = items(reader, info, () => `${item(reader)}=${item(reader)}`);
    return `{${entries.toSorted().join(",")}}`;
  }
  const argument = reader.argument(info);
  if (type === major.tag) return `${argument}(${item(reader)})`;
  // The encoded length of an integer does not matter. For floats and simple values, it is part of the value's type.
  return type === major.simple ? `${type}.${info}:${argument}` : `${type}:${argument}`;
}

function string(reader: Reader, type: number, info: number): string {
  if (info !== indefinite) return reader.take(Number(reader.argument(info))).toString("latin1");
  return items(reader, info, () => {
    const initial = reader.byte();
    if (initial >> 5 !== type) throw new Error(`CBOR with a foreign piece of a string at ${reader.at}`);
    return string(reader, type, initial & 31);
  }).join("");
}

function items(reader: Reader, info: number, next: () => string): string[] {
  const all: string[] = [];
  if (info === indefinite) {
    while (!reader.isAtBreak) all.push(next());
    reader.byte();
    return all;
  }
  for (let left = reader.argument(info); left > 0n; left -= 1n) all.push(next());
  return all;
}
