import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Json } from "../../../src/demo/objects/json.ts";
import { jsonPatch } from "../../../src/demo/objects/json-patch.ts";

const test = suite("demo/objects/json-patch");
const before: Json = { list: ["a", "b"], map: { "x/y": 1, "~": 2 } };

test("operations of RFC 6902, one after the other", () => {
  for (const [steps, expected] of [
    [[{ op: "add", path: "/list/1", value: "i" }], { ...before, list: ["a", "i", "b"] }],
    [[{ op: "add", path: "/list/-", value: "c" }], { ...before, list: ["a", "b", "c"] }],
    [[{ op: "replace", path: "/list/0", value: "z" }], { ...before, list: ["z", "b"] }],
    [[{ op: "remove", path: "/map/x~1y" }], { ...before, map: { "~": 2 } }],
    [[{ op: "copy", from: "/map/~0", path: "/list/0" }], { ...before, list: [2, "a", "b"] }],
    [[{ op: "move", from: "/list", path: "/map/l" }], { map: { "x/y": 1, "~": 2, l: ["a", "b"] } }],
    [
      [
        { op: "test", path: "/list/1", value: "b" },
        { op: "replace", path: "", value: {} },
      ],
      {},
    ],
  ] as const)
    assert.equal(jsonPatch(before, steps), expected, JSON.stringify(steps));
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
    assert.is(jsonPatch(before, [step]), undefined, JSON.stringify(step));
  assert.is(jsonPatch(before, {}), undefined);
});

test.run();
