import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Lock } from "../../src/ledger/lock.ts";
import { judgeRenewal } from "../../src/ledger/lock-judgement.ts";
import { Pods } from "../../src/ledger/pods.ts";
import { callerAt } from "../support/callers.ts";

const test = suite("ledger/lock-judgement");

test("a lock without a known holder, or one that is let go, is not judged", () => {
  const lock = new Lock({ resource: "leases", namespace: "n", name: "x" });
  const renewal = { caller: callerAt("10.0.0.1"), session: 1, holder: "x", isCreate: false, at: 0 };
  assert.is(judgeRenewal(lock, renewal, new Pods()), undefined);
  assert.is(judgeRenewal(lock, { ...renewal, holder: "" }, new Pods()), undefined);
});

test("a client that deletes a lock and makes it anew has taken it from no holder", () => {
  const lock = new Lock({ resource: "leases", namespace: "n", name: "x" });
  Object.assign(lock, { holder: "a", durationMs: 15_000, renewedAt: 1000 });
  const renewal = { caller: callerAt("10.0.0.1"), session: 1, holder: "b", at: 2000 };
  assert.is(judgeRenewal(lock, { ...renewal, isCreate: true }, new Pods()), undefined);
  assert.is(judgeRenewal(lock, { ...renewal, isCreate: false }, new Pods())?.detector, "takeover");
});

test("a pod that asked with a token of its own is another pod, whatever it is called", () => {
  const pods = new Pods();
  const lock = new Lock({ resource: "leases", namespace: "n", name: "x" });
  const caller = callerAt("10.0.0.1", { namespace: "n", pod: "rogue-1" });
  const renewal = { caller, session: 1, holder: "leader-pod", isCreate: false, at: 0 };
  assert.is(judgeRenewal(lock, renewal, pods), undefined, "a name of its own making, for all that is known");
  pods.seen("n", "leader-pod");
  assert.is(judgeRenewal(lock, renewal, pods)?.detector, "pod");
});

test.run();
