import { huffmanCodes } from "../../src/h2/hpack/huffman.ts";

/** Returns the Huffman codes of the bytes as a string of 0 and 1. */
export function huffmanBits(octets: Uint8Array): string {
  return Array.from(octets, bitsOf).join("");
}

/**
 * Returns the bytes in Huffman coding, padded with ones as RFC 7541 requires. Slow and simple: tests compare the fast
 * encoder with it.
 */
export function huffmanEncode(octets: Uint8Array): Buffer {
  return packBits(huffmanBits(octets));
}

/** Packs a string of bits into bytes, and fills the last byte with `padding`. */
export function packBits(bits: string, padding = "1"): Buffer {
  const octets = bits.padEnd(Math.ceil(bits.length / 8) * 8, padding).match(/.{8}/g) ?? [];
  return Buffer.from(octets.map((byte) => Number.parseInt(byte, 2)));
}

export function bitsOf(byte: number): string {
  const found = huffmanCodes.find((code) => code.byte === byte);
  if (found === undefined) throw new Error(`Byte ${byte} has no code`);
  return found.code.toString(2).padStart(found.length, "0");
}
