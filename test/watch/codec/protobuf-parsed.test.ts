import { suite } from "uvu";
import * as assert from "uvu/assert";
import { parsedProtobuf } from "../../../src/watch/codec/protobuf-events.ts";
import { field, protobufMetadata } from "../../support/watch-bytes.ts";

const test = suite("watch/codec/protobuf-parsed");

const magic = Buffer.from("k8s\0");

function enveloped(object: Buffer): Buffer {
  return field(2, field(1, Buffer.concat([magic, field(1, field(1, "v1")), field(2, object), field(3, "")])));
}

test("the bookmark behind the initial events is told by its annotation", () => {
  const bookmark = (annotations: Record<string, string>): Buffer =>
    enveloped(field(1, protobufMetadata({ resourceVersion: "7", annotations })));
  assert.is(parsedProtobuf(bookmark({ "k8s.io/initial-events-end": "true" }))?.endsInitialEvents, true);
  assert.is(
    parsedProtobuf(bookmark({ a: "b", "k8s.io/initial-events-end": "true" }))?.endsInitialEvents,
    true,
  );
  assert.is(parsedProtobuf(bookmark({ "k8s.io/initial-events-end": "no" }))?.endsInitialEvents, false);
  assert.is(parsedProtobuf(bookmark({ x: "k8s.io/initial-events-end" }))?.endsInitialEvents, false);
  assert.is(parsedProtobuf(bookmark({}))?.endsInitialEvents, false);
});

test("an error's Status has a code and a reason", () => {
  const status = Buffer.concat([
    field(1, ""),
    field(2, "Failure"),
    field(3, "too old resource version: 1 (2)"),
    field(4, "Expired"),
    field(6, 410),
  ]);
  assert.equal(parsedProtobuf(enveloped(status)), {
    endsInitialEvents: false,
    code: 410,
    reason: "Expired",
    oldest: "2",
  });
  assert.is(parsedProtobuf(enveloped(field(1, "")))?.code, 0);
});

test("fields of all sizes are skipped, and groups, which no apiserver writes, are not understood", () => {
  const odd = Buffer.concat([Buffer.from([0x79]), Buffer.alloc(8), Buffer.from([0x7d]), Buffer.alloc(4)]);
  assert.is(parsedProtobuf(enveloped(Buffer.concat([odd, field(6, 504)])))?.code, 504);
  assert.is(parsedProtobuf(enveloped(Buffer.from([0x7b, 0x7c]))), undefined);
});

test("what is cut short anywhere is not understood", () => {
  const whole = enveloped(Buffer.concat([field(1, ""), field(4, "Expired"), field(6, 410)]));
  for (let length = 0; length < whole.length; length++)
    assert.is(parsedProtobuf(whole.subarray(0, length)), undefined, `${length}`);
  assert.is(parsedProtobuf(field(2, field(1, Buffer.from("k8s1\x12\0")))), undefined, "no magic");
});

test.run();
