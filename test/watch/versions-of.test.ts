import { suite } from "uvu";
import * as assert from "uvu/assert";
import { aggregatedGroups, versionsOf } from "../../src/watch/versions-of.ts";

const test = suite("watch/versions-of");

const known = new Set(aggregatedGroups);

test("only the apiserver's own events share versions", () => {
  assert.is(versionsOf("", "events", known).isRepeating, true);
  assert.is(versionsOf("events.k8s.io", "events", known).isRepeating, true);
  assert.is(versionsOf("", "pods", known).isRepeating, false);
  assert.is(versionsOf("events.example.com", "events", known).isRepeating, false);
});

test("built-in and custom resources are etcd's", () => {
  for (const group of ["", "apps", "batch", "policy", "rbac.authorization.k8s.io", "discovery.k8s.io"])
    assert.is(versionsOf(group, "things", known).isForeign, false, group);
  assert.is(versionsOf("cert-manager.io", "certificates", known).isForeign, false);
});

test("an aggregated group is another server's, told by list or by a name that no custom resource may have", () => {
  assert.is(versionsOf("metrics.k8s.io", "pods", known).isForeign, true);
  assert.is(versionsOf("things.example.com", "things", new Set(["things.example.com"])).isForeign, true);
  assert.is(versionsOf("wardle", "flunders", known).isForeign, true);
});

test.run();
