import { suite } from "uvu";
import * as assert from "uvu/assert";
import { readObject } from "../../../demo/objects/object.ts";
import { targetOf } from "../../../demo/objects/resources.ts";
import { Refusal } from "../../../demo/objects/status.ts";

const test = suite("demo/objects/object");

function read(body: Parameters<typeof readObject>[0], path = "api/v1/namespaces/x/configmaps"): unknown {
  const target = targetOf(path.split("/"));
  const object = target === undefined ? undefined : readObject(body, target, "sfx");
  return object instanceof Refusal ? object.code : object?.metadata;
}

test("the path fills in what the body leaves out", () => {
  const empty = { uid: "", resourceVersion: "", creationTimestamp: "", labels: {}, rest: {} };
  assert.equal(read({ metadata: { name: "a" } }), { ...empty, name: "a", namespace: "x" });
  assert.equal(read({}, "api/v1/namespaces/x/configmaps/b"), { ...empty, name: "b", namespace: "x" });
  assert.equal(read({ metadata: { generateName: "a-" } }), { ...empty, name: "a-sfx", namespace: "x" });
});

test("what the server owns is read apart, the rest kept as it came", () => {
  const metadata = { name: "a", labels: { l: "m" }, uid: "u", annotations: { n: "o" }, finalizers: ["f"] };
  assert.equal(read({ metadata }), {
    name: "a",
    namespace: "x",
    uid: "u",
    resourceVersion: "",
    creationTimestamp: "",
    labels: { l: "m" },
    rest: { annotations: { n: "o" }, finalizers: ["f"] },
  });
});

test("what contradicts the path, or Kubernetes' rules, is refused", () => {
  assert.is(read([]), 400);
  assert.is(read(undefined), 400);
  assert.is(read({ kind: "Pod", metadata: { name: "a" } }), 400);
  assert.is(read({ apiVersion: "v2", metadata: { name: "a" } }), 400);
  assert.is(read({ metadata: { name: "a", namespace: "y" } }), 400);
  assert.is(read({ metadata: { name: "a" } }, "api/v1/namespaces/x/configmaps/b"), 400);
  assert.is(read({ metadata: { name: "a", labels: { l: 1 } } }), 422);
  for (const name of ["A", "a_b", "-a", "a.", "a".repeat(254)])
    assert.is(read({ metadata: { name } }), 422, name);
});

test.run();
