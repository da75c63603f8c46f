import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../src/base/limits.ts";
import { classify, type RequestInfo, sharedInfo } from "../../src/kube/request-info.ts";

const test = suite("kube/shared-info");

function infoOf(target: string): RequestInfo {
  return sharedInfo(classify("GET", target), target);
}

test("watches of one path share their classification, and requests that are no watches do not", () => {
  const first = infoOf("/api/v1/pods?watch=1");
  assert.is(infoOf("/api/v1/pods?resourceVersion=7&watch=true"), first);
  assert.equal(first, classify("GET", "/api/v1/pods?watch=1"));
  assert.is.not(infoOf("/api/v1/nodes?watch=1"), first);
  assert.is(infoOf("/api/v1/pods?limit=1").verb, "list");
  assert.is.not(infoOf("/api/v1/pods?limit=1"), infoOf("/api/v1/pods?limit=1"));
  assert.is(infoOf("/api/v1/watch/pods"), infoOf("/api/v1/watch/pods?resourceVersion=1"));
});

test("the number of remembered paths is limited", () => {
  const first = infoOf("/api/v1/secrets?watch=1");
  for (let index = 0; index < limits.watchPaths; index += 1)
    infoOf(`/api/v1/namespaces/n${index}/pods?watch=1`);
  assert.is.not(infoOf("/api/v1/secrets?watch=1"), first);
});

test.run();
