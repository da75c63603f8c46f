import { suite } from "uvu";
import * as assert from "uvu/assert";
import { duration, tableOf } from "../../../demo/objects/form.ts";
import { targetOf } from "../../../demo/objects/resources.ts";

const test = suite("demo/objects/form: tables");

test("ages are written as kubectl's users know them", () => {
  const second = 1_000;
  const hour = 3_600 * second;
  for (const [ms, text] of [
    [-1, "0s"],
    [119 * second, "119s"],
    [120 * second, "2m"],
    [125 * second, "2m5s"],
    [11 * 60 * second, "11m"],
    [3 * hour, "3h"],
    [3.5 * hour, "3h30m"],
    [47 * hour, "47h"],
    [49 * hour, "2d1h"],
    [9.5 * 24 * hour, "9d"],
  ] as const)
    assert.is(duration(ms), text);
});

test("a row shows the cells and carries the metadata", () => {
  const resource = targetOf(["api", "v1", "namespaces"])?.resource;
  if (resource === undefined) throw new Error("no namespaces");
  const metadata = {
    name: "a",
    namespace: "",
    uid: "u",
    resourceVersion: "7",
    creationTimestamp: "1970-01-01T00:00:00Z",
    labels: {},
    rest: {},
  };
  const object = { apiVersion: "v1", kind: "Namespace", metadata, fields: { status: { phase: "Active" } } };
  const table = tableOf(resource, [object], { version: "7", wallMs: 5_000, hasColumns: false });
  assert.is(
    JSON.stringify(table),
    '{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"columnDefinitions":null,' +
      '"rows":[{"cells":["a","Active","5s"],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",' +
      '"metadata":{"name":"a","uid":"u","resourceVersion":"7","creationTimestamp":"1970-01-01T00:00:00Z"}}}]}',
  );
});

test.run();
