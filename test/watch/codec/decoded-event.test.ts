import { suite } from "uvu";
import * as assert from "uvu/assert";
import { SmallEvent } from "../../../src/watch/codec/decoded-event.ts";
import { eventLimits } from "../../../src/watch/codec/event.ts";

const test = suite("watch/codec/decoded-event");

const bytes = Buffer.from("0123456789");

test("an event in one piece is read where it lies, one in many is put together", () => {
  const small = new SmallEvent();
  const whole = small.take(bytes, 2, 5);
  assert.is(whole?.toString(), "234");
  assert.is(whole?.buffer, bytes.buffer, "no copy");
  for (const at of [0, 1, 2]) small.keep(bytes, at, at + 1);
  assert.is(small.take(bytes, 3, 5)?.toString(), "01234");
  assert.is(small.take(bytes, 5, 6)?.toString(), "5", "nothing is left of the last one");
});

test("pieces are copies: the chunk that they came in is used again", () => {
  const small = new SmallEvent();
  const chunk = Buffer.from("abc");
  small.keep(chunk, 0, 3);
  chunk.fill("x");
  assert.is(small.take(chunk, 0, 1)?.toString(), "abcx");
});

test("what is forgotten does not come back", () => {
  const small = new SmallEvent();
  small.keep(bytes, 0, 3);
  small.forget();
  assert.is(small.take(bytes, 3, 4)?.toString(), "3");
});

test("an event beyond the limit is not kept, whole or in pieces", () => {
  const small = new SmallEvent();
  const chunk = Buffer.alloc(eventLimits.parsedEventBytes + 1);
  assert.is(small.take(chunk, 0, chunk.length), undefined);
  assert.is(small.take(chunk, 1, chunk.length)?.length, eventLimits.parsedEventBytes);
  small.keep(chunk, 1, chunk.length);
  assert.is(small.take(chunk, 0, 1), undefined);
  small.keep(chunk, 0, chunk.length);
  small.keep(chunk, 0, 1);
  assert.is(small.take(chunk, 0, 1), undefined, "too long from its first piece on");
  assert.is(small.take(chunk, 0, 1)?.length, 1);
});

test.run();
