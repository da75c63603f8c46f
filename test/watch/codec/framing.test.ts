import { suite } from "uvu";
import * as assert from "uvu/assert";
import { ownOrigin } from "../../../src/kube/api-origin.ts";
import { decodersOf } from "../../../src/watch/codec/framing.ts";
import { JsonEvents } from "../../../src/watch/codec/json-events.ts";
import { ProtobufEvents } from "../../../src/watch/codec/protobuf-events.ts";
import { Progress, Reading } from "../../../src/watch/session/session-progress.ts";
import { figure } from "../../support/figure.ts";
import { field, jsonEvent, protobufEvent, protobufMetadata } from "../../support/watch-bytes.ts";

const test = suite("watch/codec/framing");

test("JSON and Kubernetes' protobuf streams are understood, however their parameters are spelt", () => {
  for (const type of ["application/json", "Application/JSON; charset=utf-8", "application/json;stream=watch"])
    assert.instance(decodersOf(type, "", false)?.take(), JsonEvents, type);
  for (const type of ["protobuf;stream=watch", "protobuf; Stream=Watch", "protobuf ;a=b; stream=watch"])
    assert.instance(
      decodersOf(`application/vnd.kubernetes.${type}`, "", false)?.take(),
      ProtobufEvents,
      type,
    );
});

test("a decoder that was given back is lent again, and never to two streams at once", () => {
  const decoders = decodersOf("application/json", "", false);
  const one = decoders?.take();
  assert.ok(one !== undefined);
  assert.is.not(decoders?.take(), one);
  decoders?.giveBack(one);
  assert.is(decoders?.take(), one);
  assert.is.not(decoders?.take(), one);
});

test("everything else is opaque: CBOR, text, a single protobuf object, no type at all", () => {
  const plain = [
    "application/cbor-seq",
    "text/plain",
    "application/vnd.kubernetes.protobuf",
    "",
    ";",
    "json",
  ];
  for (const type of [...plain, "application/jsonl", "application/json-seq", "x application/json"])
    assert.is(decodersOf(type, "", false), undefined, type);
});

test("a compressed answer is opaque, whatever it says it is", () => {
  assert.is(decodersOf("application/json", "gzip", false), undefined);
  assert.is(decodersOf("application/json", "identity", false), undefined);
});

test("following a watch, decoder and progress, takes less than 2 KB of it", () => {
  if (globalThis.gc === undefined) return console.log("skip: no --expose-gc, memory not measured");
  const count = 20_000;
  const pod = field(
    1,
    protobufMetadata({ name: "web-0", namespace: "default", resourceVersion: "123456789" }),
  );
  const streams: [string, Buffer][] = [
    [
      "application/json",
      jsonEvent("MODIFIED", { metadata: { name: "web-0", resourceVersion: "123456789" } }),
    ],
    ["application/vnd.kubernetes.protobuf;stream=watch", protobufEvent("MODIFIED", pod)],
  ];
  for (const [type, event] of streams) {
    // Cut within the version, where a decoder must remember most.
    const middle = event.indexOf("123456789") + 4;
    const kept: unknown[] = Array.from({ length: count });
    globalThis.gc();
    const before = process.memoryUsage().heapUsed;
    for (let index = 0; index < count; index++) {
      const decoder = decodersOf(type, "", true)?.take();
      const progress = new Progress({
        start: "state",
        version: "",
        isRepeating: true,
        origin: ownOrigin,
        isInjected: false,
      });
      const reading = new Reading("", false, "a");
      decoder?.next(event, 0, event.length);
      if (decoder !== undefined) progress.take(decoder, reading, false, index);
      decoder?.next(event, 0, middle);
      kept[index] = [decoder, progress, reading];
    }
    globalThis.gc();
    const each = (process.memoryUsage().heapUsed - before) / kept.length;
    figure(`${Math.round(each)} bytes to follow one watch (${type})`);
    assert.ok(each < 2000, `${type}: ${each} bytes`);
  }
});

test.run();
