import { suite } from "uvu";
import * as assert from "uvu/assert";
import { versionField } from "../../../src/kube/list-version.ts";
import { ObjectVersion, objectVersionLimits } from "../../../src/watch/codec/object-version.ts";
import { field } from "../../support/watch-bytes.ts";

const test = suite("watch/codec/object-version");

const json = "application/json";
const protobuf = "application/vnd.kubernetes.protobuf";

/** Returns the version that is found in the body, whether it arrives whole or in pieces. */
function read(type: string, body: Buffer | string): string {
  const bytes = Buffer.from(body);
  const versions = [1, 7, 100, bytes.length].map((size) => {
    const reading = new ObjectVersion(type);
    for (let at = 0; at < bytes.length; at += size)
      reading.feed(bytes, at, Math.min(bytes.length, at + size));
    return reading.version;
  });
  assert.is(new Set(versions).size, 1, versions.join());
  return versions[0] ?? "";
}

function object(version: string, nameBytes = 5): Buffer {
  const metadata = [field(1, "n".repeat(nameBytes)), field(3, "default"), field(5, "uid"), field(6, version)];
  const raw = Buffer.concat([field(1, Buffer.concat([...metadata, field(8, "x")])), field(2, "spec")]);
  const type = field(1, Buffer.concat([field(1, "v1"), field(2, "Secret")]));
  return Buffer.concat([Buffer.from("k8s\0"), type, field(2, raw), field(3, ""), field(4, "")]);
}

test("of a typed object in JSON, and of a custom resource behind its other keys", () => {
  const spec = { metadata: { resourceVersion: "666" } };
  assert.is(
    read(
      json,
      JSON.stringify({
        kind: "Pod",
        apiVersion: "v1",
        metadata: { uid: "u", resourceVersion: "4711" },
        spec,
      }),
    ),
    "4711",
  );
  const managed = [{ manager: "x", fields: { a: 'resourceVersion":"666"' } }];
  assert.is(
    read(
      json,
      JSON.stringify({ apiVersion: "x/v1", aaa: spec, metadata: { managed, resourceVersion: "4711" } }),
    ),
    "4711",
  );
});

test("of an object in protobuf, whatever its length", () => {
  assert.is(read(protobuf, object("4711")), "4711");
  assert.is(read(protobuf, object("4711", 253)), "4711");
});

test("a Status, a text and an unknown format have none", () => {
  assert.is(read(json, '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}\n'), "");
  assert.is(read(json, "resourceVersion: 7"), "");
  assert.is(read("application/cbor", object("4711")), "");
  assert.is(read(protobuf, '{"metadata":{"resourceVersion":"4711"}}'), "");
});

test("it searches a limited number of bytes", () => {
  const late = { apiVersion: "x/v1", aaa: "x".repeat(objectVersionLimits.jsonBytes) };
  assert.is(read(json, JSON.stringify({ ...late, metadata: { resourceVersion: "4711" } })), "");
  assert.is(read(protobuf, object("4711", objectVersionLimits.protobufBytes)), "");
  const reading = new ObjectVersion(protobuf);
  reading.feed(Buffer.alloc(objectVersionLimits.protobufBytes, "k"), 0, objectVersionLimits.protobufBytes);
  assert.ok(reading.isOver);
});

test("in a protobuf Status, the version is in the metadata of a list", () => {
  const raw = "\x0a\x03\x12\x019\x12\x07Success";
  const body = Buffer.from(`k8s\0\x0a\x0c\x0a\x02v1\x12\x06Status\x12\x0e${raw}`, "latin1");
  for (const [number, version] of [
    [versionField.list, "9"],
    [versionField.object, ""],
  ] as const) {
    const reading = new ObjectVersion("application/vnd.kubernetes.protobuf", number);
    reading.feed(body, 0, body.length);
    assert.is(reading.version, version);
  }
});

test.run();
