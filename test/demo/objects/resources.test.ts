import { suite } from "uvu";
import * as assert from "uvu/assert";
import { targetOf } from "../../../demo/objects/resources.ts";

const test = suite("demo/objects/resources");

function brief(path: string): unknown {
  const target = targetOf(path.split("/"));
  if (target === undefined) return undefined;
  const { resource, namespace, name, subresource, isWatchPath } = target;
  return [resource.kind, namespace, name, subresource, isWatchPath];
}

test("a path names a collection, an object or a part of it", () => {
  for (const [path, ...expected] of [
    ["api/v1/configmaps", "ConfigMap", undefined, undefined, undefined, false],
    ["api/v1/namespaces/x/configmaps", "ConfigMap", "x", undefined, undefined, false],
    ["api/v1/namespaces/x/pods/p/log", "Pod", "x", "p", "log", false],
    ["api/v1/namespaces/x", "Namespace", undefined, "x", undefined, false],
    ["api/v1/namespaces/x/finalize", "Namespace", undefined, "x", "finalize", false],
    ["api/v1/watch/namespaces/x/secrets/s", "Secret", "x", "s", undefined, true],
    ["apis/coordination.k8s.io/v1/leases", "Lease", undefined, undefined, undefined, false],
  ] as const)
    assert.equal(brief(path), expected, path);
});

test("what is not served, or not there, is nothing", () => {
  for (const path of [
    "",
    "api",
    "api/v1",
    "api/v2/configmaps",
    "api/v1/nodes",
    "apis/v1/configmaps",
    "api/v1/configmaps/a",
    "api/v1/namespaces/x/namespaces/y",
    "api/v1/constructor",
  ])
    assert.is(brief(path), undefined, path);
});

test.run();
