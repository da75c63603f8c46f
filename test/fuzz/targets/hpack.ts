/**
 * HPACK header blocks. An invalid block must be refused with one kind of error, the result must be bounded, and decoded
 * fields must be the same after encoding and decoding again.
 */

import { limits } from "../../../src/base/limits.ts";
import type { Field } from "../../../src/h2/core/field.ts";
import { errorCode, ProtocolError } from "../../../src/h2/core/protocol-error.ts";
import { HpackDecoder } from "../../../src/h2/hpack/hpack-decoder.ts";
import { HpackEncoder } from "../../../src/h2/hpack/hpack-encoder.ts";
import { block } from "../../support/h2-frames.ts";
import { same, type Target } from "../target.ts";

/** Cuts the input into header blocks. Each block is preceded by its length in two bytes. */
function blocksOf(input: Buffer): Buffer[] {
  const blocks: Buffer[] = [];
  for (let at = 0; at + 2 <= input.length && blocks.length < 16; ) {
    const length = input.readUInt16BE(at) % 2048;
    blocks.push(input.subarray(at + 2, at + 2 + length));
    at += 2 + length;
  }
  return blocks;
}

function behindLengths(...blocks: readonly Buffer[]): Buffer {
  return Buffer.concat(blocks.flatMap((one) => [Buffer.from([one.length >> 8, one.length & 0xff]), one]));
}

const plain = (fields: readonly Field[]): readonly string[] =>
  fields.map(({ name, value, isNeverIndexed }) => `${isNeverIndexed ? "!" : ""}${name}\0${value}`);

function check(fields: readonly Field[]): void {
  let bytes = 0;
  for (const { size } of fields) bytes += size;
  if (bytes > limits.headerListBytes) throw new Error(`a list of ${fields.length} fields, ${bytes} bytes`);
}

export const hpack: Target = {
  sources: [
    "h2/hpack/hpack-decoder",
    "h2/hpack/hpack-encoder",
    "h2/hpack/hpack-table",
    "h2/hpack/huffman",
    "h2/core/field",
    "h2/core/bytes",
  ],
  seeds: [
    behindLengths(
      Buffer.from("828684418cf1e3c2e5f23a6ba0ab90f4ff", "hex"),
      Buffer.from("828684be5886a8eb10649cbf", "hex"),
    ),
    behindLengths(
      Buffer.from("400a637573746f6d2d6b65790d637573746f6d2d686561646572", "hex"),
      Buffer.from([0xbe]),
    ),
    behindLengths(Buffer.from("100870617373776f726406736563726574", "hex"), Buffer.from("3fe11f", "hex")),
    behindLengths(Buffer.from([0x20, 0x3f, 0xe1, 0x1f, 0x82]), block([["authorization", "Bearer x"]])),
    behindLengths(Buffer.from("1f0806536563726574", "hex"), Buffer.from("1f0806536563726574", "hex")),
    behindLengths(
      Buffer.concat([Buffer.from([0x40, 1, 0x61, 0x7f, 0xa1, 0x0e]), Buffer.alloc(1900, 0x62)]),
      Buffer.alloc(1500, 0xbe),
    ),
  ],
  words: [
    Buffer.from([0x7f, 0x80, 0x01]),
    Buffer.from([0x3f, 0xe1, 0x1f]),
    Buffer.from([0x20]),
    Buffer.from([0x0f, 0x08, 0x01, 0x61]),
    Buffer.from([0xff, 0xff, 0xff, 0x7f]),
    Buffer.from([0x84, 0xff, 0xff, 0xff, 0xff]),
    Buffer.from([0xbe]),
    Buffer.from([0x10, 0x04]),
    "authorization",
    "cookie",
    "x-remote-user",
  ],
  run(input) {
    const [ours, again] = [new HpackDecoder(), new HpackDecoder()];
    const encoder = new HpackEncoder();
    for (const one of blocksOf(input)) {
      let fields: readonly Field[];
      try {
        fields = ours.decode(one, 0, one.length);
      } catch (error) {
        if (error instanceof ProtocolError && error.code === errorCode.COMPRESSION_ERROR) return;
        throw error;
      }
      check(fields);
      if (ours.isOversize) continue;
      if (input.length % 5 === 0) encoder.setPeerTableLimit(input.length % 4097);
      const out = Buffer.alloc(encoder.bound(fields));
      const end = encoder.encode(fields, out, 0);
      same("read, written and read", plain(again.decode(out, 0, end)), plain(fields));
    }
  },
};
