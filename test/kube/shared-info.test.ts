import { randomBytes } from "node:crypto";
import { getHeapSnapshot } from "node:v8";
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

/** Returns random hex digits. The caller holds them as bytes only, so that a heap snapshot does not show the caller's. */
function classified(): Buffer {
  const token = randomBytes(16).toString("hex");
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  infoOf(`${path}?watch=1&access_token=${token}`);
  return Buffer.from(token);
}

test("a shared classification does not keep the query, which may contain a token (A55)", async () => {
  const token = classified();
  const seen: Buffer[] = [];
  for await (const chunk of getHeapSnapshot()) seen.push(Buffer.from(chunk as string));
  assert.is(Buffer.concat(seen).includes(token), false);
});

test.run();
