import { suite } from "uvu";
import * as assert from "uvu/assert";
import { classify } from "../../../src/kube/request-info.ts";
import { sourceOf } from "../../../src/proxy/observe/spread-reads.ts";

const test = suite("proxy/observe/spread-reads");

const pods = "/api/v1/namespaces/x/pods";

for (const [method, target, source] of [
  ["GET", `${pods}/y`, "etcd"],
  ["HEAD", `${pods}/y`, "etcd"],
  ["GET", `${pods}/y/status`, "etcd"],
  ["GET", pods, "etcd"],
  ["GET", `${pods}?labelSelector=a%3Db`, "etcd"],
  ["GET", `${pods}?resourceVersion=`, "etcd"],
  ["GET", `${pods}?limit=500`, "etcd"],
  ["GET", `${pods}?watch=1`, "etcd"],
  ["GET", `${pods}?resourceVersion=0`, "cache"],
  ["GET", `${pods}?resource%56ersion=0`, "cache"],
  ["GET", `${pods}/y?resourceVersion=0`, "cache"],
  ["GET", `${pods}?watch=1&resourceVersion=0`, "cache"],
  ["GET", `${pods}?resourceVersion=7`, "exact"],
  ["GET", `${pods}?watch=1&resourceVersion=7`, "exact"],
  ["GET", `${pods}?resourceVersion=7&resourceVersionMatch=NotOlderThan`, "exact"],
  ["GET", `${pods}/y/log`, "none"],
  ["GET", "/apis", "none"],
  ["POST", pods, "none"],
  ["DELETE", `${pods}/y?resourceVersion=0`, "none"],
] as const)
  test(`${method} ${target}: ${source}`, () => {
    assert.is(sourceOf(classify(method, target), target), source);
  });

test.run();
