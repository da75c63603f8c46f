import { suite } from "uvu";
import * as assert from "uvu/assert";
import { classify } from "../../../src/kube/request-info.ts";
import { sourceOf } from "../../../src/proxy/observe/spread-reads.ts";

const test = suite("proxy/observe/spread-reads");

const pods = "/api/v1/namespaces/x/pods";

for (const [method, target, source] of [
  ["GET", `${pods}/y`, "etcd"],
  ["GET", pods, "etcd"],
  ["GET", `${pods}?labelSelector=a%3Db`, "etcd"],
  ["GET", `${pods}?resourceVersion=`, "etcd"],
  ["GET", `${pods}?resourceVersion=0`, "cache"],
  ["GET", `${pods}?resource%56ersion=0`, "cache"],
  ["GET", `${pods}/y?resourceVersion=0`, "cache"],
  ["GET", `${pods}?watch=1&resourceVersion=0`, "cache"],
  ["GET", `${pods}?resourceVersion=7`, "other"],
  ["GET", `${pods}?resourceVersion=7&resourceVersionMatch=NotOlderThan`, "other"],
  ["GET", `${pods}?limit=500`, "other"],
  ["GET", `${pods}?continue=abc`, "other"],
  ["GET", `${pods}?watch=1`, "other"],
  ["GET", `${pods}/y/status`, "other"],
  ["GET", `${pods}/y/log`, "other"],
  ["GET", "/apis", "other"],
  ["POST", pods, "other"],
  ["DELETE", `${pods}/y`, "other"],
] as const)
  test(`${method} ${target}: ${source}`, () => {
    assert.is(sourceOf(classify(method, target), target), source);
  });

test.run();
