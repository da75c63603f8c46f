import { gzipSync } from "node:zlib";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { ListVersion, listLimits } from "../../src/kube/list-version.ts";
import { field } from "../support/watch-bytes.ts";

const test = suite("kube/list-version");

const json = "application/json";
const protobuf = "application/vnd.kubernetes.protobuf";

/**
 * Returns the version that is read from the body. Reads the body whole and in pieces of several sizes, and checks that
 * each gives the same version.
 */
function read(type: string, body: Buffer | string, encoding = ""): string {
  const bytes = Buffer.from(body);
  const versions = [1, 7, 100, 511, 512, 513, bytes.length].map((size) => {
    const reading = new ListVersion(type, encoding);
    for (let at = 0; at < bytes.length; at += size) {
      const end = Math.min(bytes.length, at + size);
      reading.feed(bytes, at, end, end === bytes.length);
    }
    return reading.version;
  });
  assert.is(new Set(versions).size, 1, versions.join());
  return versions[0] ?? "";
}

const evil = {
  kind: "List",
  metadata: {
    resourceVersion: "666",
    annotations: { a: ',"kind":"X","metadata":{"resourceVersion":"666"}}' },
  },
};
const many = Array.from({ length: 50 }, () => evil);

test("of a typed list and a Table it stands at the beginning", () => {
  for (const kind of ["PodList", "Table"]) {
    const head = { kind, apiVersion: "v1", metadata: { resourceVersion: "4711", continue: "x" } };
    assert.is(read(json, JSON.stringify({ ...head, items: many })), "4711");
    assert.is(read(json, JSON.stringify({ ...head, items: [] })), "4711");
  }
});

test("of a list of custom resources, whose keys are sorted, at the end", () => {
  const list = { apiVersion: "x/v1", items: many, kind: "ThingList" };
  for (const metadata of [
    { resourceVersion: "4711" },
    { continue: "", resourceVersion: "4711" },
    { continue: "eyJ2", remainingItemCount: 3, resourceVersion: "4711" },
  ])
    assert.is(read(json, `${JSON.stringify({ ...list, metadata })}\n`), "4711");
});

test("of a list in protobuf in its metadata", () => {
  const type = field(1, Buffer.concat([field(1, "v1"), field(2, "PodList")]));
  const metadata = field(1, Buffer.concat([field(1, ""), field(2, "4711"), field(3, "")]));
  const items = Array.from({ length: 50 }, () => field(2, "x".repeat(300)));
  const raw = field(2, Buffer.concat([metadata, ...items]));
  assert.is(
    read(protobuf, Buffer.concat([Buffer.from("k8s\0"), type, raw, field(3, ""), field(4, "")])),
    "4711",
  );
});

test("a version that is cut off is none: it would pass for an older one", () => {
  const type = field(1, Buffer.concat([field(1, "v1"), field(2, "PodList")]));
  for (let pad = 460; pad < 512; pad += 1) {
    const metadata = field(1, Buffer.concat([field(1, "x".repeat(pad)), field(2, "4711"), field(3, "")]));
    const list = Buffer.concat([
      Buffer.from("k8s\0"),
      type,
      field(2, Buffer.concat([metadata, field(2, "x".repeat(900))])),
    ]);
    assert.ok(["", "4711"].includes(read(protobuf, list)), String(pad));
  }
});

test("packed, it is read from the beginning", () => {
  const list = { kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: "4711" }, items: many };
  assert.is(read(json, gzipSync(JSON.stringify(list)), "gzip"), "4711");
});

test("what is not understood has none: other kinds, other codings, bombs, broken texts, objects of users", () => {
  assert.is(
    read("application/yaml", JSON.stringify({ kind: "x", apiVersion: "v1", metadata: evil.metadata })),
    "",
  );
  assert.is(read(json, JSON.stringify(many)), "");
  assert.is(read(json, JSON.stringify({ items: many, resourceVersion: "4711" })), "");
  assert.is(
    read(json, '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"0"},"items":[]}'),
    "",
  );
  assert.is(read(json, "x".repeat(2000)), "");
  assert.is(read(json, "x".repeat(2000), "gzip"), "");
  assert.is(read(json, "x".repeat(2000), "br"), "");
  assert.is(read(protobuf, Buffer.alloc(2000, 0xff)), "");
  assert.is(read(protobuf, Buffer.concat([Buffer.from("k8s\0"), Buffer.alloc(2000, 0x82)])), "");
  assert.is(read(json, gzipSync(Buffer.alloc(4 * listLimits.listUnzippedBytes)), "gzip"), "");
});

test.run();
