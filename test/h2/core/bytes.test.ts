import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  holds,
  latin1,
  putFrameHeader,
  putLatin1,
  putU16,
  putU32,
  u8,
  u16,
  u24,
  u31,
  u32,
} from "../../../src/h2/core/bytes.ts";

const test = suite("h2/core/bytes");

test("a frame header reads back as it was written", () => {
  const bytes = Buffer.alloc(9);
  putFrameHeader(bytes, 0, 0x123456, 9, 4, 0x7ffffffe);
  assert.equal([u24(bytes, 0), u8(bytes, 3), u8(bytes, 4), u31(bytes, 5)], [0x123456, 9, 4, 0x7ffffffe]);
});

test("unsigned 32 bits stay unsigned, and the reserved bit of a stream id is ignored", () => {
  const bytes = Buffer.alloc(6);
  putU32(bytes, 0, 0xffffffff);
  putU16(bytes, 4, 0xfffe);
  assert.equal([u32(bytes, 0), u31(bytes, 0), u16(bytes, 4)], [0xffffffff, 0x7fffffff, 0xfffe]);
});

test("bytes become characters and bytes again, short or long", () => {
  for (const length of [0, 1, 24, 25, 300]) {
    const text = Array.from({ length }, (_, at) => String.fromCharCode(at % 256)).join("");
    const bytes = Buffer.alloc(length + 2, 0xee);
    assert.is(putLatin1(bytes, 1, text), length + 1);
    assert.is(latin1(bytes, 1, length + 1), text);
    assert.equal([bytes[0], bytes[length + 1]], [0xee, 0xee]);
  }
});

test("bytes are found where they stand whole, and nowhere else", () => {
  const bytes = Buffer.from("abcabd");
  assert.ok(holds(bytes, 3, 6, Buffer.from("abd")));
  assert.not.ok(holds(bytes, 0, 6, Buffer.from("abd")));
  assert.not.ok(holds(bytes, 3, 5, Buffer.from("abd")));
});

test.run();
