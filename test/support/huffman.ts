import { huffmanCodes } from "../../src/h2/hpack/huffman.ts";

/** The bytes' codes one after another, as a string of bits. */
export function huffmanBits(octets: Uint8Array): string {
  return Array.from(octets, bitsOf).join("");
}

/** Huffman-coded bytes, padded with ones as they should be. Slow and plain: the other opinion. */
export function huffmanEncode(octets: Uint8Array): Buffer {
  return packBits(huffmanBits(octets));
}

/** Bits into bytes, the last one filled up with `padding`. */
export function packBits(bits: string, padding = "1"): Buffer {
  const octets = bits.padEnd(Math.ceil(bits.length / 8) * 8, padding).match(/.{8}/g) ?? [];
  return Buffer.from(octets.map((byte) => Number.parseInt(byte, 2)));
}

export function bitsOf(byte: number): string {
  const found = huffmanCodes.find((code) => code.byte === byte);
  if (found === undefined) throw new Error(`Byte ${byte} has no code`);
  return found.code.toString(2).padStart(found.length, "0");
}
