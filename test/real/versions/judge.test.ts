/** Results that make a run of `npm run test:versions` fail. */

import { gzipSync } from "node:zlib";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { WatchEnd } from "../load/watching.ts";
import { canonical } from "./cbor.ts";
import { unexplained } from "./cbor-watches.ts";
import { idle, type Step, unprovoked, untrue, waysOf, worse } from "./custom-judge.ts";
import { settings, troubleNamed } from "./forms.ts";
import { differences, withoutAges } from "./lists.ts";
import { mixes, nameOf, Selection } from "./mixes.ts";

const test = suite("real/versions/judge");

const fault: Step = {
  name: "api-0 killed",
  isEdit: false,
  from: 10_000,
  until: 14_000,
  sent: 30,
  changed: 30,
  failures: "",
};
const edit: Step = {
  ...fault,
  name: "storage version v2",
  isEdit: true,
  from: 20_000,
  until: 30_000,
  sent: 90,
  changed: 90,
};
const clean: WatchEnd = { at: 21_000, how: "clean", detail: "" };
const busy: WatchEnd = { at: 21_100, how: "refused", detail: "429" };

test("a step in which etcd did not change, or a write failed, proves nothing", () => {
  assert.equal(idle([fault, edit], 10), []);
  assert.equal(idle([{ ...fault, failures: "500 ×2" }], 10), ["api-0 killed: writes failed: 500 ×2"]);
  assert.equal(idle([{ ...fault, sent: 3 }], 10), ["api-0 killed: 3 writes were sent, not 20"]);
  assert.equal(idle([{ ...fault, changed: 0 }], 10), ["api-0 killed: etcd has 0 changes of 30 writes"]);
});

test("a watch is held against etcd's record, except for what it skipped after a 410", () => {
  const event = (version: number) => ({ type: "MODIFIED", name: "thing-0", version, at: 0 });
  const watch = { events: [event(11), event(13)], ends: [], gaps: [{ after: 11, until: 12 }] };
  assert.equal(untrue(watch, 10, [9, 11, 12, 13]), []);
  assert.equal(untrue({ ...watch, gaps: [] }, 10, [11, 12, 13]), [
    "1 missing, 0 doubled or out of order, 0 invented",
  ]);
  assert.equal(untrue({ ...watch, events: [event(11), event(11)] }, 10, [11]), [
    "0 missing, 1 doubled or out of order, 0 invented",
  ]);
  assert.equal(untrue(watch, 10, [11]), ["0 missing, 0 doubled or out of order, 1 invented"]);
  assert.equal(untrue({ ...watch, events: [] }, 10, [9]), ["nothing was written"]);
});

test("after an edit of a CRD, watches end no more often through the proxy than directly, in each way", () => {
  const direct = waysOf([clean, busy, { ...clean, at: 40_000 }], edit);
  assert.equal(
    [...direct],
    [
      ["clean", 1],
      ["refused 429", 1],
    ],
  );
  assert.equal(worse({ through: waysOf([clean, busy], edit), direct }), []);
  assert.equal(worse({ through: waysOf([clean, busy, busy], edit), direct }), [
    "after an edit of the CRD, 2 watches ended as refused 429, directly 1",
  ]);
  const reset: WatchEnd = { at: 21_000, how: "reset", detail: "8" };
  assert.equal(worse({ through: waysOf([reset], edit), direct }), [
    "after an edit of the CRD, 1 watches ended as reset 8, directly 0",
  ]);
});

test("outside of edits no watch may end", () => {
  assert.equal(unprovoked([clean], [fault, edit]), []);
  assert.equal(unprovoked([{ ...clean, at: 12_000 }], [fault, edit]), [
    "a watch ended without an edit of the CRD: clean",
  ]);
});

test("a CBOR watch of client-go ends at a fault, once", () => {
  const faults = [{ name: "killed", from: 10_000, until: 14_000 }];
  const end = { at: 11_000, watch: 8, form: "cbor", how: "ended: EOF (cbor)" };
  assert.equal(unexplained([end, { ...end, watch: 22 }], faults), []);
  const why = "watch 8 (cbor) ended without a failure of its apiserver: ended: EOF (cbor)";
  assert.equal(unexplained([end, { ...end, at: 13_000 }], faults), [why]);
  assert.equal(unexplained([{ ...end, at: 30_000 }], faults), [why]);
});

test("CBOR is compared without the order of the keys of a map, and with the order of an array", () => {
  const hex = (text: string): string => canonical(Buffer.from(text, "hex"));
  // {"a": 1, "b": [2, 3]}; then with the keys in the other order; then with the array in the other order.
  assert.is(hex("a2416101416282 0203".replace(" ", "")), hex("a24162820203416101"));
  assert.is.not(hex("a24161014162820203"), hex("a24161014162820302"));
  // The same values with definite and with indefinite length are equal.
  assert.is(hex("bf41610141629f0203ffff"), hex("a24161014162820203"));
  assert.is(hex("5f41614162ff"), hex("426162"));
  // A tag, integers of each length, true, and null.
  assert.is(hex("d9d9f784 1819 20f5f6".replaceAll(" ", "")), "55799([0:25,1:0,7.21:21,7.22:22])");
  for (const broken of ["82", "426", "a141", "01 01".replace(" ", ""), "1c"])
    assert.throws(() => hex(broken), /CBOR/, broken);
});

test("a list that is not compressed although it was asked for so is a miss, and so is another list", () => {
  const text = (body: Buffer): string => body.toString();
  const [one, other] = [Buffer.from("one"), Buffer.from("other")];
  const zipped = gzipSync(one);
  assert.equal(differences({ through: zipped, direct: zipped }, text, true), []);
  assert.equal(differences({ through: one, direct: zipped }, text, true), [
    "a list through the proxy is not compressed",
  ]);
  assert.equal(differences({ through: one, direct: zipped }, text, false), [
    "a list from the apiserver is compressed",
  ]);
  assert.equal(differences({ through: one, direct: other }, text, false), ["a list differs"]);
});

test("rows of a Table are compared without their ages", () => {
  const row = (age: string): Buffer =>
    Buffer.from(`{"rows":[{"cells":["a",1,"${age}"],"object":{"x":"${age}"}}]}`);
  assert.is(withoutAges(row("2s")), '{"rows":[{"cells":["a",1,"age"],"object":{"x":"2s"}}]}');
});

test("a fault that does not exist is an error", () => {
  assert.is(troubleNamed("frozen").name, "frozen");
  assert.throws(() => troubleNamed("froze"), /No fault is named froze/);
});

test("names that select nothing are told", () => {
  const selection = new Selection("1.35+1.36,1.36: CBOR on,1.3");
  for (const name of ["1.35+1.36", "1.35", "1.36", "1.36: CBOR on"]) selection.has(name);
  assert.equal(selection.unmatched, ["1.3"]);
  assert.is(selection.has("1.36: CBOR off"), false);
  assert.is(selection.has("1.35+1.36: WatchList off"), true);
  assert.is(new Selection("").has("1.33"), true);
  assert.equal(new Selection("1.35+1.36").versions, ["1.35", "1.36"]);
});

test("no two rows of a table have one name", () => {
  for (const names of [settings.map(({ name }) => name), mixes.map((mix) => nameOf(mix))])
    assert.is(new Set(names).size, names.length);
  // `--only` has names separated by commas.
  for (const { name } of settings) assert.is(new Selection(name).has(name), true, name);
});

test.run();
