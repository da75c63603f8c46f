import { suite } from "uvu";
import * as assert from "uvu/assert";
import { newCluster } from "../../../demo/apiserver/cluster.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("demo/apiserver/cluster");

test("a new cluster has its four namespaces, active", () => {
  const found = newCluster(manualClock()).list("namespaces");
  assert.equal(
    found.map(({ metadata }) => metadata.name),
    ["default", "kube-node-lease", "kube-public", "kube-system"],
  );
  assert.equal(found[0]?.fields, { status: { phase: "Active" } });
});

test.run();
