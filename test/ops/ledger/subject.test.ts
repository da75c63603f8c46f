import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { ledgerLimits } from "../../../src/ops/ledger/limits.ts";
import { subjectOf } from "../../../src/ops/ledger/subject.ts";
import { jwt } from "../../support/jwt.ts";

const test = suite("ops/ledger/subject");

test("a service account's token names its account, and the pod and node to which it was given", () => {
  const claims = {
    sub: "system:serviceaccount:ingress:nginx",
    "kubernetes.io": { namespace: "ingress", pod: { name: "nginx-1", uid: "u" }, node: { name: "n7" } },
  };
  assert.equal(subjectOf(`Bearer ${jwt(claims)}`), {
    name: "system:serviceaccount:ingress:nginx",
    source: "jwt",
    namespace: "ingress",
    pod: "nginx-1",
    node: "n7",
  });
});

test("a legacy token names its namespace under a flat key", () => {
  const claims = { sub: "s", "kubernetes.io/serviceaccount/namespace": "kube-system" };
  assert.is(subjectOf(`bearer ${jwt(claims)}`).namespace, "kube-system");
});

test("what says nothing is called what it is", () => {
  for (const [value, source] of [
    ["", "none"],
    ["Basic dXNlcjpwYXNz", "basic"],
    ["Bearer abcdef.0123456789abcdef", "bearer"],
    ["Bearer a.!!.c", "bearer"],
    [`Bearer a.${Buffer.from("[1]").toString("base64url")}.c`, "bearer"],
    ["Bearer a.bm90IGpzb24.c", "bearer"],
  ] as const)
    assert.equal(subjectOf(value), { name: "", source, namespace: "", pod: "", node: "" });
});

test("claims of any kind and size are text of some size", () => {
  const claims = { sub: `\u0000\n${"x".repeat(10_000)}`, "kubernetes.io": { pod: [1], node: { name: 7 } } };
  const { name, pod, node } = subjectOf(`Bearer ${jwt(claims)}`);
  assert.is(name.length, limits.subjectChars);
  assert.match(name, /^[?]{2}x+$/);
  assert.equal([pod, node], ["", ""]);
  assert.is(subjectOf(`Bearer ${jwt({ sub: "x".repeat(ledgerLimits.claimsChars) })}`).source, "bearer");
});

test.run();
