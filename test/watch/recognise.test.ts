import { suite } from "uvu";
import * as assert from "uvu/assert";
import { aggregatedGroups, recognise } from "../../src/watch/recognise.ts";

const test = suite("watch/recognise");

const known = new Set(aggregatedGroups);

test("only the apiserver's own events share versions", () => {
  assert.is(recognise("", "events", known).isRepeating, true);
  assert.is(recognise("events.k8s.io", "events", known).isRepeating, true);
  assert.is(recognise("", "pods", known).isRepeating, false);
  assert.is(recognise("events.example.com", "events", known).isRepeating, false);
});

test("built-in and custom resources are etcd's", () => {
  for (const group of ["", "apps", "batch", "policy", "rbac.authorization.k8s.io", "discovery.k8s.io"])
    assert.is(recognise(group, "things", known).isForeign, false, group);
  assert.is(recognise("cert-manager.io", "certificates", known).isForeign, false);
});

test("an aggregated group is another server's, told by list or by a name that no custom resource may have", () => {
  assert.is(recognise("metrics.k8s.io", "pods", known).isForeign, true);
  assert.is(recognise("things.example.com", "things", new Set(["things.example.com"])).isForeign, true);
  assert.is(recognise("wardle", "flunders", known).isForeign, true);
});

test.run();
