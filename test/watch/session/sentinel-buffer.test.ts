import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { EventType, WatchEvent } from "../../../src/watch/codec/event.ts";
import { Ahead } from "../../../src/watch/session/watch-stream.ts";

const test = suite("watch/session/sentinel-buffer");

function event(type: EventType, version: string): WatchEvent {
  return { type, version, endsInitialEvents: false, code: 0, reason: "", oldest: "", key: "n/a" };
}

test("events wait in order, with the bytes that they came in", () => {
  const ahead = new Ahead();
  ahead.push(event("ADDED", "8"), Buffer.from("eight"));
  ahead.push(event("MODIFIED", "9"), Buffer.from("nine"));
  assert.equal([ahead.count, ahead.bytes], [2, 9]);
  assert.is(ahead.next?.event.version, "8");
  assert.is(ahead.shift()?.bytes.toString(), "eight");
  assert.is(ahead.shift()?.bytes.toString(), "nine");
  assert.equal([ahead.shift(), ahead.count, ahead.bytes], [undefined, 0, 0]);
});

test("what an event says is kept as it was: a decoder says another thing with its next one", () => {
  const ahead = new Ahead();
  const decoder: { -readonly [K in keyof WatchEvent]: WatchEvent[K] } = event("ADDED", "8");
  ahead.push(decoder, Buffer.from("x"));
  decoder.version = "9";
  assert.is(ahead.next?.event.version, "8");
});

test("of bookmarks in a row the last one is kept: a quiet watch holds no more of them each minute", () => {
  const ahead = new Ahead();
  for (let version = 8; version < 100; version += 1)
    ahead.push(event("BOOKMARK", String(version)), Buffer.from("bookmark"));
  assert.equal([ahead.count, ahead.bytes, ahead.next?.event.version], [1, 8, "99"]);
  ahead.push(event("ADDED", "100"), Buffer.from("x"));
  ahead.push(event("BOOKMARK", "101"), Buffer.from("y"));
  assert.is(ahead.count, 3);
});

test.run();
