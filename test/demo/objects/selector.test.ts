import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { KubeObject } from "../../../demo/objects/json.ts";
import { targetOf } from "../../../demo/objects/resources.ts";
import { selectorOf } from "../../../demo/objects/selector.ts";
import { Refusal } from "../../../demo/objects/status.ts";

const test = suite("demo/objects/selector");
const object: KubeObject = {
  apiVersion: "v1",
  kind: "Secret",
  metadata: {
    name: "a",
    namespace: "default",
    uid: "",
    resourceVersion: "1",
    creationTimestamp: "",
    labels: { app: "x", "example.com/tier": "" },
    rest: {},
  },
  fields: { type: "Opaque" },
};

function answer(key: string, term: string): unknown {
  const resource = targetOf(["api", "v1", "secrets"])?.resource;
  if (resource === undefined) return undefined;
  const selected = selectorOf(new URLSearchParams([[key, term]]), resource);
  return selected instanceof Refusal ? selected.code : selected(object);
}

test("labels", () => {
  for (const [term, expected] of [
    ["", true],
    ["app", true],
    ["!app", false],
    ["!other", true],
    ["app=x", true],
    ["app == x", true],
    ["app!=x", false],
    ["other!=x", true],
    ["app in (w, x)", true],
    ["app notin (w,x)", false],
    ["other notin (w)", true],
    ["app in (x),example.com/tier=,!constructor", true],
    ["app=x,other", false],
    ["app in x", 400],
    ["=x", 400],
  ] as const)
    assert.is(answer("labelSelector", term), expected, term);
});

test("fields", () => {
  for (const [term, expected] of [
    ["metadata.name=a", true],
    ["metadata.name!=a", false],
    ["metadata.namespace==default,type=Opaque", true],
    ["spec.nodeName=n", 400],
    ["metadata.name", 400],
  ] as const)
    assert.is(answer("fieldSelector", term), expected, term);
});

test.run();
