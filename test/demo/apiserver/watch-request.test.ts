import { suite } from "uvu";
import * as assert from "uvu/assert";
import { isWatch, watchRequestOf } from "../../../demo/apiserver/watch-request.ts";
import { targetOf } from "../../../demo/objects/resources.ts";
import { Refusal } from "../../../demo/objects/status.ts";

const test = suite("demo/apiserver/watch-request");

function target(path: string): NonNullable<ReturnType<typeof targetOf>> {
  const found = targetOf(path.split("/"));
  if (found === undefined) throw new Error(path);
  return found;
}

test("the first `watch` decides, a name makes it a GET, a /watch/ path is one always", () => {
  const collection = target("api/v1/configmaps");
  for (const [query, expected] of [
    ["watch", true],
    ["watch=", true],
    ["watch=no", true],
    ["watch=TRUE", true],
    ["watch=0", false],
    ["watch=False", false],
    ["Watch=true", false],
    ["watch=false&watch=true", false],
    ["", false],
  ] as const)
    assert.is(isWatch("GET", collection, new URLSearchParams(query)), expected, query);
  const one = target("api/v1/namespaces/default/configmaps/a");
  assert.is(isWatch("GET", one, new URLSearchParams("watch=true")), false);
  assert.is(isWatch("GET", target("api/v1/watch/configmaps"), new URLSearchParams("watch=false")), true);
  assert.is(isWatch("POST", collection, new URLSearchParams("watch=true")), false);
});

function start(query: string): unknown {
  const request = watchRequestOf(target("api/v1/configmaps"), new URLSearchParams(query));
  if (request instanceof Refusal) return request.code;
  return [request.start, request.marksInitialEnd, request.timeoutSeconds];
}

test("where a watch begins", () => {
  assert.equal(start("resourceVersion=7"), [{ from: "version", version: 7 }, false, undefined]);
  assert.equal(start(""), [{ from: "state", atLeast: 0 }, false, undefined]);
  assert.equal(start("resourceVersion=0&allowWatchBookmarks=1"), [
    { from: "state", atLeast: 0 },
    true,
    undefined,
  ]);
  const match = "resourceVersionMatch=NotOlderThan";
  assert.equal(start(`${match}&sendInitialEvents=false&timeoutSeconds=9`), [{ from: "now" }, false, 9]);
  assert.equal(start(`${match}&sendInitialEvents=true&resourceVersion=7&allowWatchBookmarks=true`), [
    { from: "state", atLeast: 7 },
    true,
    undefined,
  ]);
});

test("what cannot be asked", () => {
  assert.is(start("sendInitialEvents=true"), 422);
  assert.is(start("resourceVersion=7&resourceVersionMatch=NotOlderThan"), 422);
  assert.is(start("resourceVersion=seven"), 500);
  assert.is(start("labelSelector=((("), 400);
});

test.run();
