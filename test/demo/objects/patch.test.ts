import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Json } from "../../../src/demo/objects/json.ts";
import { patches } from "../../../src/demo/objects/patch.ts";

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

test.run();
