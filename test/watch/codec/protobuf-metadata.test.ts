import { suite } from "uvu";
import * as assert from "uvu/assert";
import { ProtobufMetadata } from "../../../src/watch/codec/protobuf-metadata.ts";
import { everyCut, field, protobufMetadata } from "../../support/watch-bytes.ts";

const test = suite("watch/codec/protobuf-metadata");

const magic = Buffer.from("k8s\0");
const kind = field(1, Buffer.concat([field(1, "v1"), field(2, "Pod")]));

function enveloped(object: Buffer): Buffer {
  return field(2, field(1, Buffer.concat([magic, kind, field(2, object), field(3, ""), field(4, "")])));
}

/**
 * Returns version, namespace and name as decoded from the chunks, "more" if they are incomplete, or "bad" if the
 * decoder gave up.
 */
function walked(chunks: readonly Buffer[], length: number): string {
  const metadata = new ProtobufMetadata(true);
  metadata.begin(length);
  for (const chunk of chunks) if (metadata.walk(chunk, 0, chunk.length) < 0) return "bad";
  const { version, namespace, name, isOver } = metadata;
  return isOver ? `${version} ${namespace}/${name}` : "more";
}

function agree(bytes: Buffer, expected: string): void {
  for (const chunks of everyCut(bytes))
    assert.is(walked(chunks, bytes.length), expected, bytes.toString("hex"));
}

const meta = { name: "web-0", namespace: "default", resourceVersion: "7" };

test("the version is the metadata's field 6, whatever a user stores beside it", () => {
  const fake = enveloped(field(1, protobufMetadata({ resourceVersion: "666" }))).toString("latin1");
  const annotations = { resourceVersion: "666", fake, "2\x03666": "2\x03666" };
  const object = Buffer.concat([field(1, protobufMetadata({ ...meta, annotations })), field(6, "666")]);
  agree(enveloped(object), "7 default/web-0");
});

test("an object without a version that means something has none", () => {
  agree(enveloped(field(1, "")), " /");
  agree(enveloped(field(1, field(1, "web-0"))), " /web-0");
  agree(enveloped(field(1, protobufMetadata({ ...meta, resourceVersion: "" }))), " default/web-0");
  agree(
    enveloped(field(1, protobufMetadata({ ...meta, resourceVersion: "1".repeat(21) }))),
    " default/web-0",
  );
  agree(
    enveloped(field(1, protobufMetadata({ ...meta, resourceVersion: "1".repeat(999) }))),
    " default/web-0",
  );
  agree(enveloped(field(1, field(6, 7))), " /");
});

test("fields of all sizes before it are passed over", () => {
  const odd = Buffer.concat([
    Buffer.from([0x09]),
    Buffer.alloc(8, 0x32),
    Buffer.from([0x0d]),
    Buffer.alloc(4, 0x32),
  ]);
  const negative = Buffer.from([0x38, ...Buffer.alloc(9, 0xff), 1]);
  agree(enveloped(field(1, Buffer.concat([odd, negative, field(17, "666"), field(6, "7")]))), "7 /");
});

test("lengths and tags that do not fit together are given up", () => {
  const good = enveloped(field(1, protobufMetadata(meta)));
  for (const at of [0, 2, 4, 5, 6, 7, 8]) {
    const bad = Buffer.from(good);
    bad[at] = (bad[at] ?? 0) ^ 1;
    assert.is(walked([bad], bad.length), "bad", `byte ${at}`);
  }
  assert.is(walked([good], good.length + 1), "bad", "something follows the object");
  assert.is(walked([good], good.length - 1), "bad", "it reaches beyond the event");
  for (const octets of [
    [0x33],
    [0x0b, 0x0c],
    [0x32, 5, 0x37],
    [0x0d, 0, 0],
    [0x09, 0, 0],
    [0x0a],
    [0x38],
    [0x38, 0x80],
    [0x32],
    [0x80],
    Array.from({ length: 11 }, () => 0xff),
  ])
    agree(enveloped(field(1, Buffer.from(octets))), "bad");
  agree(enveloped(field(2, "metadata")), "bad");
});

test.run();
