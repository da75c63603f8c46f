import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { kindOf, Lease } from "../../../src/ops/ledger/lease.ts";
import { callerAt } from "../../support/callers.ts";

const test = suite("ops/ledger/lease");

test("a verdict is over when nothing more of it was seen", () => {
  const lease = new Lease({ resource: "leases", namespace: "n", name: "x" });
  assert.equal([lease.text, lease.verdictAt(0)], ["leases n/x", undefined]);
  lease.judgement = { verdict: "ghost", detector: "pod", was: "", valueMs: 0, limitMs: 0, reason: "r" };
  lease.judgedAt = 100;
  assert.is(lease.verdictAt(100 + limits.leaseQuietMs - 1)?.verdict, "ghost");
  assert.is(lease.verdictAt(100 + limits.leaseQuietMs), undefined);
});

test("pods of one workload are of one kind, wherever they are", () => {
  const subject = { name: "system:serviceaccount:n:x" };
  assert.is(
    kindOf(callerAt("10.0.0.1", subject)),
    kindOf(callerAt("10.0.0.2", { ...subject, pod: "other" })),
  );
  assert.is.not(kindOf(callerAt("10.0.0.1", subject)), kindOf(callerAt("10.0.0.1", subject, "curl")));
});

test.run();
