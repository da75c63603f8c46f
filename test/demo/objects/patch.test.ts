import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Json } from "../../../demo/objects/json.ts";
import { patches } from "../../../demo/objects/patch.ts";

const test = suite("demo/objects/patch");
const merged = (type: string, before: Json, patch: Json): Json | undefined =>
  patches.get(`application/${type}`)?.(before, patch);

test("a merge patch is RFC 7386's: null removes, lists are replaced, anything else goes down", () => {
  const before = { a: { b: "c", d: "e" }, f: [1, 2] };
  assert.equal(merged("merge-patch+json", before, { a: { b: null, g: 1 }, f: [3] }), {
    a: { d: "e", g: 1 },
    f: [3],
  });
  assert.equal(merged("merge-patch+json", { a: "text" }, { a: { b: null, c: {} } }), { a: { c: {} } });
});

test("a strategic merge joins lists by name and obeys $patch: delete", () => {
  const before = { list: [{ name: "a", x: 1 }, { name: "b" }], plain: [1] };
  const patch = {
    list: [{ name: "a", y: 2 }, { name: "b", $patch: "delete" }, { name: "c" }],
    plain: [2],
    "$setElementOrder/list": [],
  };
  assert.equal(merged("strategic-merge-patch+json", before, patch), {
    list: [{ name: "a", x: 1, y: 2 }, { name: "c" }],
    plain: [2],
  });
});

test("a key named __proto__ is a key like any other", () => {
  const patch: Json = JSON.parse('{"__proto__":{"polluted":true}}');
  const result = merged("merge-patch+json", {}, patch);
  assert.is(JSON.stringify(result), '{"__proto__":{"polluted":true}}');
  assert.is(Object.getPrototypeOf(result), Object.prototype);
});

const whole: Json = { list: ["a", "b"], map: { "x/y": 1, "~": 2 } };
const jsonPatch = (patch: Json): Json | undefined => merged("json-patch+json", whole, patch);

test("operations of RFC 6902, one after the other", () => {
  for (const [steps, expected] of [
    [[{ op: "add", path: "/list/1", value: "i" }], { ...whole, list: ["a", "i", "b"] }],
    [[{ op: "add", path: "/list/-", value: "c" }], { ...whole, list: ["a", "b", "c"] }],
    [[{ op: "replace", path: "/list/0", value: "z" }], { ...whole, list: ["z", "b"] }],
    [[{ op: "remove", path: "/map/x~1y" }], { ...whole, map: { "~": 2 } }],
    [[{ op: "copy", from: "/map/~0", path: "/list/0" }], { ...whole, list: [2, "a", "b"] }],
    [[{ op: "move", from: "/list", path: "/map/l" }], { map: { "x/y": 1, "~": 2, l: ["a", "b"] } }],
    [
      [
        { op: "test", path: "/list/1", value: "b" },
        { op: "replace", path: "", value: {} },
      ],
      {},
    ],
  ] as const)
    assert.equal(jsonPatch(steps), expected, JSON.stringify(steps));
});

test("what does not fit changes nothing", () => {
  for (const step of [
    { op: "add", path: "/list/9", value: 1 },
    { op: "add", path: "/no/where", value: 1 },
    { op: "add", path: "/list/0" },
    { op: "replace", path: "/map/no", value: 1 },
    { op: "remove", path: "/list/2" },
    { op: "remove", path: "" },
    { op: "move", from: "/no", path: "/yes" },
    { op: "test", path: "/list/1", value: "a" },
    { op: "test", path: "/map/constructor", value: 1 },
    { op: "other", path: "/list" },
    "remove",
  ])
    assert.is(jsonPatch([step]), undefined, JSON.stringify(step));
  assert.is(jsonPatch({}), undefined);
});

test.run();
