import { suite } from "uvu";
import * as assert from "uvu/assert";
import { targetOf } from "../../../demo/objects/resources.ts";
import { conflict, expired, modified, notFound, Refusal } from "../../../demo/objects/status.ts";

const test = suite("demo/objects/status");
const leases = targetOf(["apis", "coordination.k8s.io", "v1", "leases"])?.resource;

test("a refusal is a Status with the words that clients match on", () => {
  if (leases === undefined) throw new Error("no leases");
  assert.equal(notFound(leases, "a").status, {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message: 'leases.coordination.k8s.io "a" not found',
    reason: "NotFound",
    details: { name: "a", group: "coordination.k8s.io", kind: "leases" },
    code: 404,
  });
  assert.is(
    conflict(leases, "a", modified).status["message"],
    'Operation cannot be fulfilled on leases.coordination.k8s.io "a": the object has been modified; ' +
      "please apply your changes to the latest version and try again",
  );
});

test("a watch that starts too early learns from where it may", () => {
  const refusal = expired(7, 9);
  assert.instance(refusal, Refusal);
  assert.equal([refusal.code, refusal.status["message"]], [410, "too old resource version: 7 (9)"]);
});

test.run();
