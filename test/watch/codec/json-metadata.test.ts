import { suite } from "uvu";
import * as assert from "uvu/assert";
import { JsonMetadata } from "../../../src/watch/codec/json-metadata.ts";
import { everyCut } from "../../support/watch-bytes.ts";

const test = suite("watch/codec/json-metadata");

/**
 * Returns version, namespace and name as decoded from the chunks, "more" if they are incomplete, or "bad" if the
 * decoder gave up.
 */
function walked(chunks: readonly Buffer[]): string {
  const metadata = new JsonMetadata(true);
  for (const chunk of chunks) if (metadata.walk(chunk, 0, chunk.length) < 0) return "bad";
  const { version, namespace, name, isOver } = metadata;
  return isOver ? `${version} ${namespace}/${name}` : "more";
}

function agree(text: string, expected: string): void {
  for (const chunks of everyCut(Buffer.from(text))) assert.is(walked(chunks), expected, text);
}

test("the version is the metadata's, wherever a user writes one too", () => {
  const fake = '{"type":"DELETED","object":{"metadata":{"resourceVersion":"666"}}}\n';
  const users: unknown[] = [
    { resourceVersion: "666" },
    { metadata: { resourceVersion: "666" } },
    [{ metadata: { resourceVersion: "666" } }, "resourceVersion", "metadata"],
    fake,
    `\\"metadata\\":{\\"resourceVersion\\":\\"666\\"}`,
    "metadata",
    '"\\\\',
    "\u2028<>&\u0001",
    666,
    -1.5e-7,
    null,
    true,
  ];
  for (const user of users) {
    const first = { Metadata: user, aaa: user, resourceVersion: user, type: user, object: user };
    const metadata = {
      annotations: { resourceVersion: "666", user: JSON.stringify(user) },
      labels: { resourceVersion: "666" },
      managedFields: [{ fieldsV1: { "f:metadata": { "f:resourceVersion": {}, resourceVersion: "666" } } }],
      name: "web-0",
      namespace: "default",
      resourceVersion: "7",
    };
    agree(JSON.stringify({ ...first, metadata, spec: user }), "7 default/web-0");
  }
});

test("an object without a version that means something has none", () => {
  const objects: unknown[] = [
    {},
    { kind: "Pod" },
    { metadata: {} },
    { metadata: null },
    { metadata: "resourceVersion" },
    { metadata: [{ resourceVersion: "7" }] },
    { metadata: { resourceVersion: 7 } },
    { metadata: { resourceVersion: null } },
    { metadata: { resourceVersion: { resourceVersion: "7" } } },
    { metadata: { resourceVersion: ["7"] } },
    { metadata: { resourceVersion: "" } },
    { metadata: { resourceVersion: "0" } },
    { metadata: { resourceVersion: "07" } },
    { metadata: { resourceVersion: "7a" } },
    { metadata: { resourceVersion: "1".repeat(21) } },
    { metadata: { resourceVersion: "1".repeat(1000) } },
    { metadata: { resourceVersions: "7", resourceversion: "7", "": "7" } },
    { metaData: { resourceVersion: "7" }, resourceVersion: "7" },
  ];
  for (const object of objects) agree(JSON.stringify(object), " /");
});

test("what follows the version is not looked at", () => {
  const metadata = new JsonMetadata(false);
  const bytes = Buffer.from('{"metadata":{"resourceVersion":"7",not json at all');
  assert.is(metadata.walk(bytes, 0, bytes.length), bytes.indexOf(","));
  assert.is(metadata.version, "7");
});

test("what is no compact JSON is given up", () => {
  for (const text of [
    " {",
    "[",
    "null",
    '{ "a":1}',
    '{"a" :1}',
    '{"a": 1}',
    '{"a":1 }',
    '{"a":1,}',
    "{,",
    "{a",
    '{"a"}',
    '{"a":}',
    '{"a":x',
    '{"a":"\n"',
    '{"a":{"b":"\0"',
    '{"a":[\n',
    '{"a\tb"',
  ])
    agree(text, "bad");
});

test("it is used for one object after the other", () => {
  const metadata = new JsonMetadata(true);
  for (const [text, expected] of [
    ['{"metadata":{"name":"a","namespace":"b","resourceVersion":"1"}}', "1 b/a"],
    ['{"metadata":{"annotations":{"x":"y"}}}', " /"],
    ['{"metadata":{"resourceVersion":"3"}}', "3 /"],
  ] as const) {
    metadata.reset();
    const bytes = Buffer.from(text);
    metadata.walk(bytes, 0, bytes.length);
    assert.is(`${metadata.version} ${metadata.namespace}/${metadata.name}`, expected);
  }
});

test.run();
