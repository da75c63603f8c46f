import { suite } from "uvu";
import * as assert from "uvu/assert";
import { putFrameHeader, putU16, putU32, u8, u16, u24, u31, u32 } from "../../src/h2/bytes.ts";

const test = suite("h2/bytes");

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

test.run();
