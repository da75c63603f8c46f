import { Field } from "../../src/h2/core/field.ts";
import type { HpackDecoder } from "../../src/h2/hpack/hpack-decoder.ts";
import type { HpackEncoder } from "../../src/h2/hpack/hpack-encoder.ts";

/** Hexadecimal digits, with blanks where they help, as bytes. */
export function hex(digits: string): Buffer {
  return Buffer.from(digits.replaceAll(/\s/g, ""), "hex");
}

/** `name: value` lines as fields. */
export function fields(...texts: readonly string[]): Field[] {
  return texts.map((text) => {
    const colon = text.indexOf(": ", 1);
    return new Field(text.slice(0, colon), text.slice(colon + 2));
  });
}

/** The other way round, to compare. */
export function lines(list: readonly Field[]): string[] {
  return list.map(({ name, value }) => `${name}: ${value}`);
}

export function decode(decoder: HpackDecoder, block: Buffer): Field[] {
  return decoder.decode(block, 0, block.length);
}

/** The block alone; fails when it is longer than bound() said. */
export function encode(encoder: HpackEncoder, list: readonly Field[]): Buffer {
  const bound = encoder.bound(list);
  const out = Buffer.alloc(bound + 64);
  const end = encoder.encode(list, out, 7);
  if (end - 7 > bound) throw new Error(`A block of ${end - 7} bytes, bound() said ${bound}`);
  return out.subarray(7, end);
}

/** RFC 7541 §5.1. Another opinion than the encoder's, for blocks that it would not write. */
export function integer(pattern: number, mask: number, value: number): Buffer {
  if (value < mask) return Buffer.from([pattern | value]);
  const octets = [pattern | mask];
  let rest = value - mask;
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) octets.push((rest % 128) | 0x80);
  return Buffer.from([...octets, rest]);
}

/** A literal field by its words, plain strings. */
export function literal(pattern: number, name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([pattern]), plainString(name), plainString(value)]);
}

export function plainString(text: string): Buffer {
  return Buffer.concat([integer(0, 0x7f, text.length), Buffer.from(text, "latin1")]);
}
