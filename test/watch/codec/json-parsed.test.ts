import { suite } from "uvu";
import * as assert from "uvu/assert";
import { parsedJson } from "../../../src/watch/codec/json-events.ts";

const test = suite("watch/codec/json-parsed");

const parsed = (object: unknown) => parsedJson(Buffer.from(JSON.stringify(object)));
const annotations = { "k8s.io/initial-events-end": "true" };

test("the bookmark behind the initial events is told by its annotation, true as text", () => {
  assert.is(parsed({ kind: "Pod", metadata: { annotations } })?.endsInitialEvents, true);
  for (const metadata of [
    {},
    { annotations: {} },
    { annotations: { "k8s.io/initial-events-end": true } },
    { annotations: { "k8s.io/initial-events-end": "false" } },
    { labels: annotations },
    annotations,
  ])
    assert.is(parsed({ metadata })?.endsInitialEvents, false, JSON.stringify(metadata));
});

test("in a Table it is the row's object that carries it", () => {
  const metadata = { resourceVersion: "7" };
  const table = (rows: unknown) => ({ kind: "Table", apiVersion: "meta.k8s.io/v1", metadata, rows });
  assert.is(parsed(table([{ cells: [], object: { metadata: { annotations } } }]))?.endsInitialEvents, true);
  for (const rows of [undefined, null, [], [null], [{ cells: [], object: null }], [[]]])
    assert.is(parsed(table(rows))?.endsInitialEvents, false);
  for (const apiVersion of ["v1", "furniture.example.com/v1", undefined]) {
    const own = { kind: "Table", apiVersion, metadata, rows: [{ object: { metadata: { annotations } } }] };
    assert.is(parsed(own)?.endsInitialEvents, false, "a Table of another kind");
  }
});

test("an error's Status has a code and a reason", () => {
  const status = { kind: "Status", metadata: {}, code: 410, reason: "Expired", message: "too old" };
  assert.equal(parsed(status), {
    endsInitialEvents: false,
    code: 410,
    reason: "Expired",
    oldest: "",
    key: "",
  });
  assert.is(parsed({ code: "410", reason: 5 })?.code, 0);
  assert.is(parsed({ code: "410", reason: 5 })?.reason, "");
});

test("a key is namespace and name, of the row's object in a Table", () => {
  assert.is(parsed({ metadata: { name: "a", namespace: "b" } })?.key, "b/a");
  assert.is(parsed({ metadata: { name: "a" } })?.key, "/a");
  assert.is(parsed({ metadata: { namespace: "b" } })?.key, "");
  const rows = [{ cells: [1], object: { metadata: { name: "a", namespace: "b" } } }];
  assert.is(parsed({ kind: "Table", apiVersion: "meta.k8s.io/v1", metadata: {}, rows })?.key, "b/a");
});

test("what is no JSON object is not understood", () => {
  for (const text of ["", "{", "[]", "null", "7", '"x"', "{}}", '{"a":1}x'])
    assert.is(parsedJson(Buffer.from(text)), undefined, text);
});

test.run();
