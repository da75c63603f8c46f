import { suite } from "uvu";
import * as assert from "uvu/assert";
import { h2Limits } from "../../../src/h2/core/limits.ts";
import { errorCode, ProtocolError } from "../../../src/h2/core/protocol-error.ts";
import { HeaderBlock } from "../../../src/h2/frame/reader.ts";

const test = suite("h2/frame/header-block");

const isCalm = (error: unknown): boolean =>
  error instanceof ProtocolError && error.code === errorCode.ENHANCE_YOUR_CALM && error.scope === "session";

function opened(first = "a"): HeaderBlock {
  const block = new HeaderBlock();
  block.open(5, Buffer.from(first), 0, first.length);
  return block;
}

test("pieces are joined in order, and the next block starts anew", () => {
  const block = opened("ab");
  assert.is(block.id, 5);
  block.append(Buffer.from("xcdx"), 1, 3);
  assert.is(block.take().toString(), "abcd");
  assert.is(block.id, 0);
  block.open(7, Buffer.from("z"), 0, 1);
  assert.is(block.take().toString(), "z");
});

test("pieces are copies: the chunk they came in may be overwritten", () => {
  const chunk = Buffer.from("ab");
  const block = new HeaderBlock();
  block.open(1, chunk, 0, 1);
  block.append(chunk, 1, 2);
  chunk.fill(0);
  assert.is(block.take().toString(), "ab");
});

test("eight CONTINUATION frames pass, the ninth makes the block too long, be they empty or not (A5)", () => {
  for (const octets of [0, 1]) {
    const block = opened();
    for (let at = 0; at < h2Limits.continuationFrames; at++) block.append(Buffer.from("b"), 0, octets);
    assert.not(block.isTooLong);
    block.append(Buffer.from("b"), 0, octets);
    assert.ok(block.isTooLong);
  }
});

test("144 KiB pass, one byte more makes the block too long (A5)", () => {
  const block = opened("");
  block.append(Buffer.alloc(h2Limits.headerBlockBytes), 0, h2Limits.headerBlockBytes);
  assert.not(block.isTooLong);
  block.append(Buffer.alloc(1), 0, 1);
  assert.ok(block.isTooLong);
});

test("a block that is too long keeps only what is not passed on, and has an end itself", () => {
  const block = opened("abc");
  const parts: string[] = [];
  const passOn = (next: number): void =>
    block.passOn((part) => {
      parts.push(part.toString());
      return next;
    });
  passOn(2);
  block.append(Buffer.from("def"), 0, 3);
  passOn(6);
  block.append(Buffer.from("ghi"), 0, 3);
  passOn(1);
  assert.equal(parts, ["abc", "cdef", "i"]);
  assert.is(block.take().toString(), "");
  const endless = opened();
  const frame = Buffer.alloc(16_384);
  for (let sent = 0; sent < h2Limits.longBlockBytes; sent += frame.length) {
    endless.append(frame, 0, frame.length);
    endless.passOn((part) => part.length);
  }
  assert.throws(() => endless.append(frame, 0, 1), isCalm);
});

test.run();
