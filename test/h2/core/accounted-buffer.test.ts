import { suite } from "uvu";
import * as assert from "uvu/assert";
import { AccountedBuffer } from "../../../src/h2/core/accounted-buffer.ts";
import { Buffered } from "../../../src/h2/core/buffered.ts";

const test = suite("h2/core/accounted-buffer");

test("what comes byte by byte is held in order, counted, and given back once", () => {
  const buffered = new Buffered(1000);
  const held = new AccountedBuffer(buffered);
  const chunk = Buffer.from("abcdefgh");
  for (let at = 0; at < chunk.length; at += 1) held.add(chunk, at, at + 1);
  chunk.fill(0);
  assert.equal([held.length, buffered.bytes], [8, 8]);
  assert.is(held.take().toString(), "abcdefgh");
  assert.equal([held.length, buffered.bytes, held.take().length], [0, 0, 0]);
});

test.run();
