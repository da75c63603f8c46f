import { suite } from "uvu";
import * as assert from "uvu/assert";
import { isImmediateDelete, leaderAnnotation, leaseRecordIn } from "../../../src/ops/ledger/lease-body.ts";
import { field } from "../../support/watch-bytes.ts";

const test = suite("ops/ledger/lease-body");

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const enveloped = (kind: string, object: Buffer): Buffer =>
  Buffer.concat([Buffer.from("k8s\0"), field(1, field(2, kind)), field(2, object)]);
const spec = { holderIdentity: "pod_1", leaseDurationSeconds: 15, renewTime: "2026-11-22T00:00:00.000000Z" };
const annotations = { [leaderAnnotation]: JSON.stringify(spec) };
const whole = { name: "x", holder: "pod_1", durationMs: 15_000, isRenewal: true };

test("a Lease is read in JSON and in protobuf", () => {
  assert.equal(leaseRecordIn(json({ metadata: { name: "x" }, spec }), true), whole);
  const time = field(1, 1_800_000_000);
  const lease = Buffer.concat([
    field(1, Buffer.concat([field(1, "x"), field(3, "kube-system")])),
    field(2, Buffer.concat([field(1, "pod_1"), field(2, 15), field(3, time), field(4, time), field(5, 2)])),
  ]);
  assert.equal(leaseRecordIn(enveloped("Lease", lease), true), whole);
});

test("so is the annotation of a ConfigMap, and one without it is no lease", () => {
  assert.equal(leaseRecordIn(json({ metadata: { name: "x", annotations } }), false), whole);
  const entry = Buffer.concat([field(1, leaderAnnotation), field(2, JSON.stringify(spec))]);
  const map = field(1, Buffer.concat([field(1, "x"), field(12, entry)]));
  assert.equal(leaseRecordIn(enveloped("ConfigMap", map), false), whole);
  assert.is(leaseRecordIn(json({ metadata: { name: "x" }, data: { a: "b" } }), false), undefined);
  assert.is(leaseRecordIn(json({ data: { a: leaderAnnotation } }), false), undefined);
});

test("a patch says what it changes: no holder leaves it, none at all lets it go", () => {
  const { renewTime } = spec;
  const renewed = { name: "", holder: undefined, durationMs: undefined, isRenewal: true };
  assert.equal(leaseRecordIn(json({ spec: { renewTime } }), true), renewed);
  assert.equal(
    leaseRecordIn(json([{ op: "replace", path: "/spec/renewTime", value: renewTime }]), true),
    renewed,
  );
  assert.is(leaseRecordIn(json({ spec: { holderIdentity: null } }), true)?.holder, "");
  assert.is(leaseRecordIn(json({ spec: { holderIdentity: "" } }), true)?.holder, "");
  assert.is(leaseRecordIn(json({ metadata: { labels: {} } }), true), undefined);
  assert.is(leaseRecordIn(json([{ op: "remove", path: "/metadata/labels/x" }]), true), undefined);
});

test("what cannot be read is no lease, and throws nothing", () => {
  for (const body of ["", "{", "null", "7", '"x"', "spec: {holderIdentity: x}", "k8s\0\xff\xff", "[null]"])
    for (const isLease of [true, false])
      assert.is(leaseRecordIn(Buffer.from(body, "latin1"), isLease)?.isRenewal ?? false, false, body);
});

test("a DELETE without grace is known by its body", () => {
  assert.ok(isImmediateDelete(json({ kind: "DeleteOptions", gracePeriodSeconds: 0 })));
  assert.ok(isImmediateDelete(enveloped("DeleteOptions", field(1, 0))));
  for (const body of [
    json({ gracePeriodSeconds: 30 }),
    enveloped("DeleteOptions", field(1, 30)),
    Buffer.alloc(0),
  ])
    assert.not(isImmediateDelete(body));
});

test.run();
