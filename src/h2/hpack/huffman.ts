/**
 * Decodes Huffman codes (RFC 7541 §5.2), one input byte per step. hpack-encoder.ts explains why there is no encoder.
 */
import { u8 } from "../core/bytes.ts";

const endOfString = 256;

/**
 * The bytes (in hexadecimal; ranges are inclusive) whose codes have a given length in bits (appendix B). Codes of the
 * same length count upwards in the order of their bytes, so the lengths define the codes.
 */
const bytesByLength: ReadonlyMap<number, string> = new Map([
  [5, "30-32 61 63 65 69 6f 73-74"],
  [6, "20 25 2d-2f 33-39 3d 41 5f 62 64 66-68 6c-6e 70 72 75"],
  [7, "3a 42-57 59 6a-6b 71 76-7a"],
  [8, "26 2a 2c 3b 58 5a"],
  [10, "21-22 28-29 3f"],
  [11, "27 2b 7c"],
  [12, "23 3e"],
  [13, "00 24 40 5b 5d 7e"],
  [14, "5e 7d"],
  [15, "3c 60 7b"],
  [19, "5c c3 d0"],
  [20, "80 82-83 a2 b8 c2 e0 e2"],
  [21, "99 a1 a7 ac b0-b1 b3 d1 d8-d9 e3 e5-e6"],
  [22, "81 84-86 88 92 9a 9c a0 a3-a4 a9-aa ad b2 b5 b9-bb bd-be c4 c6 e4 e8-e9"],
  [23, "01 87 89-8d 8f 93 95-98 9b 9d-9e a5-a6 a8 ae-af b4 b6-b7 bc bf c5 e7 ef"],
  [24, "09 8e 90-91 94 9f ab ce d7 e1 ec-ed"],
  [25, "c7 cf ea-eb"],
  [26, "c0-c1 c8-ca cd d2 d5 da-db ee f0 f2-f3 ff"],
  [27, "cb-cc d3-d4 d6 dd-df f1 f4-f8 fa-fe"],
  [28, "02-08 0b-0c 0e-15 17-1f 7f dc f9"],
  [30, "0a 0d 16 100"],
]);

function bytesIn(ranges: string): number[] {
  return ranges.split(" ").flatMap((range) => {
    const [first = 0, last = first] = range.split("-").map((digits) => Number.parseInt(digits, 16));
    return Array.from({ length: last - first + 1 }, (_, at) => first + at);
  });
}

/** The code of one byte: the low `length` bits of `code`, most significant bit first. */
type Code = { readonly byte: number; readonly code: number; readonly length: number };

export const huffmanCodes: readonly Code[] = canonicalCodes();

function canonicalCodes(): Code[] {
  const codes: Code[] = [];
  let code = 0;
  let lastLength = 0;
  for (const [length, ranges] of bytesByLength) {
    code <<= length - lastLength;
    lastLength = length;
    for (const byte of bytesIn(ranges)) codes.push({ byte, code: code++, length });
  }
  return codes;
}

/** Number of inner nodes of the code tree (257 leaves). Each inner node is a state of the decoder; node 0 is the root. */
const innerNodes = 256;
/** `children[2 * node + bit]`: the next inner node, or ~byte for a leaf. */
const children = new Int16Array(innerNodes * 2);

function growTree(): void {
  let nodes = 1;
  for (const { byte, code, length } of huffmanCodes) {
    let node = 0;
    for (let bit = length - 1; bit > 0; bit--) {
      const branch = 2 * node + ((code >>> bit) & 1);
      if (children[branch] === 0) children[branch] = nodes++;
      node = children[branch] ?? 0;
    }
    children[2 * node + (code & 1)] = ~byte;
  }
}
growTree();

/**
 * `steps[256 * state + byte]`: the effect of an input byte in a state. Bits 0-7: the next state. Bits 8-15 and 16-23:
 * the decoded bytes, at most two, because the shortest code has five bits. Bits 24-25: the number of decoded bytes. -1:
 * the input contains the end-of-string code, which is an error. With a table of 16 KiB that takes four bits per step,
 * decoding would take twice the time.
 */
const steps = new Int32Array(innerNodes * 256);

/**
 * Fills the entries of `steps` from `at` on. The input bits read so far lead to `node`, and `step` holds the bytes that
 * they have produced. `bits` more bits of the input byte follow.
 */
function fillSteps(at: number, node: number, bits: number, step: number): void {
  if (bits === 0) {
    steps[at] = step | node;
    return;
  }
  for (const bit of [0, 1]) {
    const from = at + (bit << (bits - 1));
    const child = children[2 * node + bit] ?? 0;
    if (child === ~endOfString) steps.fill(-1, from, from + (1 << (bits - 1)));
    else if (child < 0) fillSteps(from, 0, bits - 1, withByte(step, ~child));
    else fillSteps(from, child, bits - 1, step);
  }
}

function withByte(step: number, byte: number): number {
  const count = step >>> 24;
  return (step | (byte << (8 + 8 * count))) + (1 << 24);
}
for (let state = 0; state < innerNodes; state++) fillSteps(256 * state, state, 8, 0);

/**
 * `mayEnd[node]` is 1 if a string may end at this node. After the last code, at most seven padding bits may follow, all
 * of them 1. So these nodes are the root and the seven nodes that 1 bits reach from the root.
 */
const mayEnd = new Uint8Array(innerNodes);
for (let node = 0, depth = 0; depth < 8; depth++) {
  mayEnd[node] = 1;
  node = children[2 * node + 1] ?? 0;
}

/**
 * Returns the buffer size for decoding `count` bytes. Every code has at least five bits. The result includes one spare
 * byte, because the decoder always writes two bytes at once.
 */
export function decodedBound(count: number): number {
  return Math.floor((count * 8) / 5) + 1;
}

/**
 * Decodes `bytes[start, end)` into the beginning of `out`, which must have room for `decodedBound(end - start)`.
 * Returns the decoded length, or -1 if a code or the padding is invalid.
 */
export function huffmanDecode(bytes: Uint8Array, start: number, end: number, out: Uint8Array): number {
  let state = 0;
  let length = 0;
  for (let at = start; at < end; at++) {
    const step = steps[(state << 8) | u8(bytes, at)] ?? -1;
    if (step < 0) return -1;
    // Always writes two bytes, which is cheaper than a branch. `length` then grows by the number of valid bytes.
    out[length] = step >>> 8;
    out[length + 1] = step >>> 16;
    length += step >>> 24;
    state = step & 0xff;
  }
  return mayEnd[state] === 1 ? length : -1;
}
