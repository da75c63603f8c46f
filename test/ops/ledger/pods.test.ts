import { suite } from "uvu";
import * as assert from "uvu/assert";
import { ledgerLimits } from "../../../src/ops/ledger/limits.ts";
import { isNamed, isSibling, Pods, podNamedBy } from "../../../src/ops/ledger/pods.ts";

const test = suite("ops/ledger/pods");

test("a deleted pod is gone until one of its name is seen to exist", () => {
  const pods = new Pods();
  pods.deleted("n", "web-0", 5);
  assert.equal([pods.deletedAt("n", "web-0"), pods.deletedAt("m", "web-0")], [5, undefined]);
  pods.exists("n", "web-0");
  assert.is(pods.deletedAt("n", "web-0"), undefined);
});

test("of too many the oldest are forgotten", () => {
  const pods = new Pods();
  for (let index = 0; index <= ledgerLimits.pods; index += 1) {
    pods.deleted("n", `p-${index}`, 0);
    pods.seen("n", `p-${index}`);
  }
  assert.equal([pods.deletedAt("n", "p-0"), pods.isSeen("n", "p-0")], [undefined, false]);
  assert.equal([pods.deletedAt("n", "p-1"), pods.isSeen("n", "p-1")], [0, true]);
});

test("a holder names a pod, with or without words behind it", () => {
  assert.is(podNamedBy("web-7d4f-x2k4l_0c4e"), "web-7d4f-x2k4l");
  assert.is(podNamedBy("web-0"), "web-0");
  assert.ok(
    isNamed("web-0_0c4e", "web-0") && isNamed("web-0", "web-0") && isNamed("web-0-external", "web-0"),
  );
  assert.not(isNamed("web-01", "web-0") || isNamed("web-0", ""));
});

test("pods of one workload look alike", () => {
  assert.ok(isSibling("web-7d4f-x2k4l", "web-7d4f-zzzzz"));
  assert.ok(isSibling("db-0", "db-1"));
  assert.not(isSibling("db-0", "db-0") || isSibling("a-7d4f-x2k4l", "b-7d4f-x2k4l"));
  assert.not(isSibling("db-0", "db-leader") || isSibling("db-x2k4l", "db-leads"));
});

test.run();
