import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { KubeObject } from "../../../demo/objects/json.ts";
import { type Change, Store } from "../../../demo/objects/store.ts";

const test = suite("demo/objects/store");

function configMap(name: string, namespace = "default"): KubeObject {
  const metadata = {
    name,
    namespace,
    uid: "",
    resourceVersion: "",
    creationTimestamp: "",
    labels: {},
    rest: {},
  };
  return { apiVersion: "v1", kind: "ConfigMap", metadata, fields: {} };
}

const brief = ({ type, version, object }: Change): string =>
  `${type} ${object.metadata.name} ${version}/${object.metadata.resourceVersion}`;

test("one revision counts the writes of every resource", () => {
  const store = new Store();
  store.put("configmaps", configMap("a"));
  store.put("secrets", configMap("b"));
  assert.is(store.put("configmaps", configMap("a")).metadata.resourceVersion, "4");
  assert.is(store.revision, 4);
});

test("a removed object carries the version of its removal (seed 001)", () => {
  const store = new Store();
  const heard: string[] = [];
  store.subscribe((change) => heard.push(brief(change)));
  store.put("configmaps", configMap("a"));
  store.remove("configmaps", "default", "a");
  assert.equal(heard, ["ADDED a 2/2", "DELETED a 3/3"]);
  assert.is(store.remove("configmaps", "default", "a"), undefined);
});

test("a list is in key order and keeps to its namespace", () => {
  const store = new Store();
  for (const [name, namespace] of [
    ["b", "x"],
    ["a", "y"],
    ["a", "x"],
    ["a", "x-1"],
  ] as const)
    store.put("configmaps", configMap(name, namespace));
  const keys = (namespace?: string): string[] =>
    store.list("configmaps", namespace).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
  assert.equal(keys(), ["x-1/a", "x/a", "x/b", "y/a"]);
  assert.equal(keys("x"), ["x/a", "x/b"]);
});

test("history gives exactly what came after a version, or says that it has forgotten", () => {
  const store = new Store(2);
  for (const name of ["a", "b", "c", "d", "e"]) store.put("configmaps", configMap(name));
  assert.is(store.oldest, 4);
  assert.is(store.since("configmaps", 3), undefined);
  assert.equal(store.since("configmaps", 4)?.map(brief), ["ADDED d 5/5", "ADDED e 6/6"]);
  assert.equal(store.since("secrets", 4), []);
  assert.equal(store.since("configmaps", 99), []);
});

test("what shares a lease goes at one version, in key order", () => {
  const store = new Store();
  const [a, b, c] = ["a", "b", "c"].map((name) => store.put("events", configMap(name)));
  const heard: string[] = [];
  store.subscribe((change) => heard.push(brief(change)));
  assert.is(store.expire("events", [a ?? configMap("a"), c ?? configMap("c"), configMap("never")]), 2);
  assert.equal(heard, ["DELETED a 5/5", "DELETED c 5/5"]);
  assert.equal(store.list("events"), [b]);
  assert.is(store.expire("events", []), 0);
  assert.is(store.revision, 5);
});

test("a compaction forgets what came before it and nothing else", () => {
  const store = new Store();
  for (const name of ["a", "b", "c"]) store.put("configmaps", configMap(name));
  store.compact(3);
  assert.is(store.oldest, 3);
  assert.is(store.since("configmaps", 2), undefined);
  assert.equal(store.since("configmaps", 3)?.map(brief), ["ADDED c 4/4"]);
  store.compact(2);
  assert.is(store.oldest, 3);
});

test("a subscriber that unsubscribed gets nothing more", () => {
  const store = new Store();
  let count = 0;
  const stop = store.subscribe(() => {
    count += 1;
    stop();
  });
  store.put("configmaps", configMap("a"));
  store.put("configmaps", configMap("b"));
  assert.is(count, 1);
});

test("a namespace's contents are found across resources", () => {
  const store = new Store();
  store.put("configmaps", configMap("a", "x"));
  store.put("secrets", configMap("b", "x"));
  store.put("secrets", configMap("c", "y"));
  assert.equal(store.within("x"), [
    ["configmaps", "a"],
    ["secrets", "b"],
  ]);
});

test("a copy has what was there at its version, and a history of its own from there on", () => {
  const store = new Store();
  store.put("configmaps", configMap("a"));
  const { metadata } = store.put("configmaps", configMap("b"));
  store.put("configmaps", configMap("a"));
  store.put("configmaps", configMap("c"));
  store.remove("configmaps", "default", "b");
  const copy = store.copyAt(Number(metadata.resourceVersion));
  const names = (of: Store): string[] => of.list("configmaps").map(({ metadata: { name } }) => name);
  assert.equal(
    [names(copy), names(store)],
    [
      ["a", "b"],
      ["a", "c"],
    ],
  );
  assert.equal([copy.revision, copy.oldest], [Number(metadata.resourceVersion), copy.revision]);
  const mine = copy.put("configmaps", configMap("d"));
  assert.is(Number(mine.metadata.resourceVersion), copy.revision);
  assert.equal(
    [names(copy), names(store)],
    [
      ["a", "b", "d"],
      ["a", "c"],
    ],
  );
});

test.run();
