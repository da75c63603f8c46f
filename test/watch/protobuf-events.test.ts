import * as fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../src/limits.ts";
import { ProtobufEvents } from "../../src/watch/protobuf-events.ts";
import { cut, everyCut, protobufEvent, relayed, sizes } from "../support/watch-bytes.ts";

const test = suite("watch/protobuf-events");

/** Contents that look like lengths and ends of lines, and one longer than a length's lowest octet can say. */
const contents = [
  Buffer.from([0]),
  Buffer.from("\0\0\0\x01\n"),
  Buffer.from("k8s\0"),
  Buffer.alloc(300, 0xff),
];
const stream = Buffer.concat(contents.map(protobufEvent));

test("whole events go on and the rest is held, wherever the bytes are cut", () => {
  for (const half of [protobufEvent(Buffer.from("pod")).subarray(0, 6), Buffer.from([0, 0])]) {
    for (const chunks of everyCut(Buffer.concat([stream, half]))) {
      const framing = new ProtobufEvents();
      const { forwarded, held, isOpaque } = relayed(framing, chunks);
      assert.is(isOpaque, false);
      assert.equal(forwarded, stream);
      assert.equal(held, half);
      assert.is(framing.events, contents.length);
      assert.is(framing.isWhole, false);
    }
  }
});

test("a fresh stream, and one that ended with an event, are whole", () => {
  const framing = new ProtobufEvents();
  assert.is(framing.isWhole, true);
  assert.is(framing.feed(stream, 0, stream.length), stream.length);
  assert.is(framing.isWhole, true);
  assert.is(framing.feed(stream, 9, 9), 9, "an empty DATA frame");
  assert.is(framing.feed(stream, 0, 4), 0);
  assert.is(framing.isWhole, false, "the length has come, the event has not");
});

test("a length of nothing, or of more than the limit, makes the stream opaque (A60)", () => {
  for (const length of [0, limits.eventBytes + 1, 0x7fffffff, 0xffffffff]) {
    const bad = Buffer.alloc(8);
    bad.writeUInt32BE(length);
    for (const chunks of everyCut(Buffer.concat([stream, bad]))) {
      const { forwarded, held, isOpaque } = relayed(new ProtobufEvents(), chunks);
      assert.is(isOpaque, true);
      assert.equal(Buffer.concat([forwarded, held]), Buffer.concat([stream, bad]));
    }
  }
});

test("an event as large as the limit goes on whole", () => {
  const event = protobufEvent(Buffer.alloc(limits.eventBytes));
  const framing = new ProtobufEvents();
  assert.is(framing.feed(event, 0, event.length - 1), 0);
  assert.is(framing.feed(event, event.length - 1, event.length), event.length);
});

test("JSON under a wrong label is opaque at its first octets", () => {
  assert.is(new ProtobufEvents().feed(Buffer.from('{"type"'), 0, 7), -1);
});

test("what is forwarded is the input up to its last boundary, for any events and any cuts", () => {
  const event = fc.uint8Array({ minLength: 1, maxLength: 60 }).map(protobufEvent);
  fc.assert(
    fc.property(fc.array(event, { maxLength: 8 }), fc.nat(70), sizes, (events, missing, at) => {
      const all = Buffer.concat(events);
      const input = all.subarray(0, Math.max(0, all.length - missing));
      let boundary = 0;
      for (const { length } of events)
        if (boundary + length <= input.length) boundary += length;
        else break;
      const framing = new ProtobufEvents();
      const { forwarded, held, isOpaque } = relayed(framing, cut(input, at));
      assert.is(isOpaque, false);
      assert.equal(forwarded, input.subarray(0, boundary));
      assert.equal(held, input.subarray(boundary));
      assert.is(framing.isWhole, held.length === 0);
    }),
    { numRuns: 2000 },
  );
});

test.run();
