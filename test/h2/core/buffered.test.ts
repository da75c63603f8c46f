import { suite } from "uvu";
import * as assert from "uvu/assert";
import { AccountedBuffer, Buffered } from "../../../src/h2/core/buffered.ts";

const test = suite("h2/core/buffered");

test("it is tight above half of its limit, and reports each addition above all of it", () => {
  const buffered = new Buffered(100);
  let told = 0;
  buffered.onOver = () => {
    told += 1;
  };
  buffered.add(50);
  assert.equal([buffered.isTight, told], [false, 0]);
  buffered.add(50);
  assert.equal([buffered.isTight, buffered.isOver, told], [true, false, 0]);
  buffered.add(1);
  assert.equal([buffered.isOver, told], [true, 1]);
  buffered.add(-60);
  assert.equal([buffered.bytes, buffered.isTight, told], [41, false, 1]);
});

test("bytes that arrive one by one are kept in order, counted, and taken once", () => {
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
