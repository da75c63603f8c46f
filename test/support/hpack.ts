import { Field } from "../../src/h2/core/field.ts";
import type { HpackDecoder } from "../../src/h2/hpack/hpack-decoder.ts";
import type { HpackEncoder } from "../../src/h2/hpack/hpack-encoder.ts";

/** Converts hexadecimal digits, with optional blanks, to bytes. */
export function hex(digits: string): Buffer {
  return Buffer.from(digits.replaceAll(/\s/g, ""), "hex");
}

/** Converts `name: value` lines to fields. */
export function fields(...texts: readonly string[]): Field[] {
  return texts.map((text) => {
    const colon = text.indexOf(": ", 1);
    return new Field(text.slice(0, colon), text.slice(colon + 2));
  });
}

/** Converts fields to `name: value` lines, for comparison. */
export function lines(list: readonly Field[]): string[] {
  return list.map(({ name, value }) => `${name}: ${value}`);
}

export function decode(decoder: HpackDecoder, block: Buffer): Field[] {
  return decoder.decode(block, 0, block.length);
}

/** Returns the encoded header block. Throws if it is longer than the result of bound(). */
export function encode(encoder: HpackEncoder, list: readonly Field[]): Buffer {
  const bound = encoder.bound(list);
  const out = Buffer.alloc(bound + 64);
  const end = encoder.encode(list, out, 7);
  if (end - 7 > bound) throw new Error(`A block of ${end - 7} bytes, bound() said ${bound}`);
  return out.subarray(7, end);
}

/**
 * Encodes an integer (RFC 7541 §5.1). Independent of the encoder under test, so that tests can write blocks that the
 * encoder never would.
 */
export function integer(pattern: number, mask: number, value: number): Buffer {
  if (value < mask) return Buffer.from([pattern | value]);
  const octets = [pattern | mask];
  let rest = value - mask;
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) octets.push((rest % 128) | 0x80);
  return Buffer.from([...octets, rest]);
}

/** Encodes a literal field with plain strings. `pattern` is its first byte. */
export function literal(pattern: number, name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([pattern]), plainString(name), plainString(value)]);
}

export function plainString(text: string): Buffer {
  return Buffer.concat([integer(0, 0x7f, text.length), Buffer.from(text, "latin1")]);
}
