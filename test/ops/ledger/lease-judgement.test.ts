import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Lease } from "../../../src/ops/ledger/lease.ts";
import { judgeRenewal } from "../../../src/ops/ledger/lease-judgement.ts";
import { Pods } from "../../../src/ops/ledger/pods.ts";
import { callerAt } from "../../support/callers.ts";

const test = suite("ops/ledger/lease-judgement");

test("a lease without a known holder, or one that is let go, is not judged", () => {
  const lease = new Lease({ resource: "leases", namespace: "n", name: "x" });
  const renewal = { caller: callerAt("10.0.0.1"), session: 1, holder: "x", isCreate: false, at: 0 };
  assert.is(judgeRenewal(lease, renewal, new Pods()), undefined);
  assert.is(judgeRenewal(lease, { ...renewal, holder: "" }, new Pods()), undefined);
});

test("a client that deletes a lease and makes it anew has taken it from no holder", () => {
  const lease = new Lease({ resource: "leases", namespace: "n", name: "x" });
  Object.assign(lease, { holder: "a", durationMs: 15_000, renewedAt: 1000 });
  const renewal = { caller: callerAt("10.0.0.1"), session: 1, holder: "b", at: 2000 };
  assert.is(judgeRenewal(lease, { ...renewal, isCreate: true }, new Pods()), undefined);
  assert.is(judgeRenewal(lease, { ...renewal, isCreate: false }, new Pods())?.detector, "takeover");
});

test("a lease without a duration never expires, so it may be taken at any time, but two holders may not alternate", () => {
  const lease = new Lease({ resource: "leases", namespace: "n", name: "x" });
  Object.assign(lease, { holder: "a", durationMs: 0, renewedAt: 1000 });
  const renewal = { caller: callerAt("10.0.0.1"), session: 1, holder: "b", isCreate: false, at: 1001 };
  assert.is(judgeRenewal(lease, renewal, new Pods()), undefined);
  Object.assign(lease, { handovers: [{ from: "b", to: "a", at: 1000, isReleased: false }] });
  assert.is(judgeRenewal(lease, renewal, new Pods())?.detector, "turns");
});

test("a pod that asked with a token of its own is another pod, whatever it is called", () => {
  const pods = new Pods();
  const lease = new Lease({ resource: "leases", namespace: "n", name: "x" });
  const caller = callerAt("10.0.0.1", { namespace: "n", pod: "rogue-1" });
  const renewal = { caller, session: 1, holder: "leader-pod", isCreate: false, at: 0 };
  assert.is(judgeRenewal(lease, renewal, pods), undefined, "a name of its own making, for all that is known");
  pods.seen("n", "leader-pod");
  assert.is(judgeRenewal(lease, renewal, pods)?.detector, "pod");
});

test.run();
