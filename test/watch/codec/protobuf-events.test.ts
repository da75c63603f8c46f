import * as fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { eventLimits, isOpaque, needsMore } from "../../../src/watch/codec/event.ts";
import { ProtobufEvents } from "../../../src/watch/codec/protobuf-events.ts";
import {
  cut,
  everyCut,
  field,
  protobufEvent,
  protobufMetadata,
  relayed,
  sizes,
} from "../../support/watch-bytes.ts";

const test = suite("watch/codec/protobuf-events");

/** Objects whose bytes look like lengths and line ends, and one whose length needs more than one byte. */
const named = (annotations: Record<string, string>): Buffer =>
  field(1, protobufMetadata({ name: "web-0", namespace: "default", resourceVersion: "7", annotations }));
const objects = [
  field(1, ""),
  named({ "\0\0\0\x01\n": "k8s\0" }),
  named({ resourceVersion: "8", note: "2\x019" }),
  Buffer.concat([named({}), field(2, Buffer.alloc(300, 0xff))]),
];
const stream = Buffer.concat(objects.map((object) => protobufEvent("ADDED", object)));

test("whole events go on and the rest is held, wherever the bytes are cut", () => {
  for (const half of [protobufEvent("ADDED", named({})).subarray(0, 60), Buffer.from([0, 0])]) {
    for (const chunks of everyCut(Buffer.concat([stream, half]))) {
      const decoder = new ProtobufEvents(false);
      const { forwarded, held, isOpaque: gaveUp } = relayed(decoder, chunks);
      assert.is(gaveUp, false);
      assert.equal(forwarded, stream);
      assert.equal(held, half);
      assert.is(decoder.events, objects.length);
      assert.is(decoder.isWhole, false);
    }
  }
});

test("a fresh stream, and one that ended with an event, are whole", () => {
  const decoder = new ProtobufEvents(false);
  assert.is(decoder.isWhole, true);
  const first = protobufEvent("ADDED", field(1, "")).length;
  assert.is(decoder.next(stream, 0, stream.length), first);
  assert.is(decoder.isWhole, true);
  assert.is(decoder.next(stream, 9, 9), needsMore, "an empty DATA frame");
  assert.is(decoder.isWhole, true);
  assert.is(decoder.next(stream, first, first + 4), needsMore);
  assert.is(decoder.isWhole, false, "the length has come, the event has not");
});

test("a length of nothing, or of more than the limit, makes the stream opaque (A60)", () => {
  for (const length of [0, eventLimits.eventBytes + 1, 0x7fffffff, 0xffffffff]) {
    const bad = Buffer.alloc(8);
    bad.writeUInt32BE(length);
    for (const chunks of everyCut(Buffer.concat([stream, bad]))) {
      const { forwarded, held, isOpaque: gaveUp } = relayed(new ProtobufEvents(false), chunks);
      assert.is(gaveUp, true);
      assert.equal(Buffer.concat([forwarded, held]), Buffer.concat([stream, bad]));
    }
  }
});

test("an event as large as the limit goes on whole", () => {
  const spent =
    protobufEvent("ADDED", Buffer.concat([named({}), field(2, Buffer.alloc(1 << 23))])).length - (1 << 23);
  const size = eventLimits.eventBytes + 4 - spent;
  const event = protobufEvent("ADDED", Buffer.concat([named({}), field(2, Buffer.alloc(size))]));
  assert.is(event.length, eventLimits.eventBytes + 4);
  const decoder = new ProtobufEvents(false);
  assert.is(decoder.next(event, 0, event.length - 1), needsMore);
  assert.is(decoder.next(event, event.length - 1, event.length), event.length);
});

test("JSON under a wrong label is opaque at its first bytes", () => {
  assert.is(new ProtobufEvents(false).next(Buffer.from('{"type"'), 0, 7), isOpaque);
});

test("what is forwarded is the input up to its last boundary, for any events and any cuts", () => {
  const event = fc
    .uint8Array({ maxLength: 60 })
    .map((octets) => protobufEvent("MODIFIED", Buffer.concat([named({}), field(2, octets)])));
  fc.assert(
    fc.property(fc.array(event, { maxLength: 8 }), fc.nat(300), sizes, (events, missing, at) => {
      const all = Buffer.concat(events);
      const input = all.subarray(0, Math.max(0, all.length - missing));
      let boundary = 0;
      for (const { length } of events)
        if (boundary + length <= input.length) boundary += length;
        else break;
      const decoder = new ProtobufEvents(false);
      const { forwarded, held, isOpaque: gaveUp } = relayed(decoder, cut(input, at));
      assert.is(gaveUp, false);
      assert.equal(forwarded, input.subarray(0, boundary));
      assert.equal(held, input.subarray(boundary));
      assert.is(decoder.isWhole, held.length === 0);
    }),
    { numRuns: 2000 },
  );
});

test.run();
