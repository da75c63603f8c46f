import { suite } from "uvu";
import * as assert from "uvu/assert";
import { framingFor } from "../../src/watch/framing.ts";
import { JsonEvents } from "../../src/watch/json-events.ts";
import { ProtobufEvents } from "../../src/watch/protobuf-events.ts";

const test = suite("watch/framing");

test("JSON and Kubernetes' protobuf streams are understood, however their parameters are spelt", () => {
  for (const type of ["application/json", "Application/JSON; charset=utf-8", "application/json;stream=watch"])
    assert.instance(framingFor(type, ""), JsonEvents, type);
  for (const type of ["protobuf;stream=watch", "protobuf; Stream=Watch", "protobuf ;a=b; stream=watch"])
    assert.instance(framingFor(`application/vnd.kubernetes.${type}`, ""), ProtobufEvents, type);
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
    assert.is(framingFor(type, ""), undefined, type);
});

test("a compressed answer is opaque, whatever it says it is", () => {
  assert.is(framingFor("application/json", "gzip"), undefined);
  assert.is(framingFor("application/json", "identity"), undefined);
});

test("following a watch takes less than 200 bytes of it", () => {
  if (globalThis.gc === undefined) return console.log("skip: no --expose-gc, memory not measured");
  const chunk = Buffer.from("\0\0\x10\0half an event");
  const count = 20_000;
  const kept: unknown[] = Array.from({ length: count });
  for (const type of ["application/json", "application/vnd.kubernetes.protobuf;stream=watch"]) {
    globalThis.gc();
    const before = process.memoryUsage().heapUsed;
    for (let index = 0; index < count; index++) {
      const framing = framingFor(type, "");
      framing?.feed(chunk, 0, chunk.length);
      kept[index] = framing;
    }
    globalThis.gc();
    const each = (process.memoryUsage().heapUsed - before) / count;
    assert.ok(each < 200, `${type}: ${each} bytes`);
  }
  assert.is(kept.length, count);
});

test.run();
