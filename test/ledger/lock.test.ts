import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../src/base/limits.ts";
import { kindOf, Lock } from "../../src/ledger/lock.ts";
import { callerAt } from "../support/callers.ts";

const test = suite("ledger/lock");

test("a verdict is over when nothing more of it was seen", () => {
  const lock = new Lock({ resource: "leases", namespace: "n", name: "x" });
  assert.equal([lock.text, lock.verdictAt(0)], ["leases n/x", undefined]);
  lock.judgement = { verdict: "ghost", detector: "pod", was: "", valueMs: 0, limitMs: 0, reason: "r" };
  lock.judgedAt = 100;
  assert.is(lock.verdictAt(100 + limits.leaseQuietMs - 1)?.verdict, "ghost");
  assert.is(lock.verdictAt(100 + limits.leaseQuietMs), undefined);
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
