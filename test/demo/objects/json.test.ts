import { suite } from "uvu";
import * as assert from "uvu/assert";
import { isWithin, jsonOf, mapOf, parseJson, textOf } from "../../../demo/objects/json.ts";

const test = suite("demo/objects/json");

test("an object is written in the order in which a Go server writes it", () => {
  const metadata = {
    name: "a",
    namespace: "",
    uid: "u",
    resourceVersion: "7",
    creationTimestamp: "t",
    labels: { l: "m" },
    rest: { annotations: {} },
  };
  assert.is(
    JSON.stringify(jsonOf({ apiVersion: "v1", kind: "Namespace", metadata, fields: { spec: {} } })),
    '{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a","uid":"u","resourceVersion":"7",' +
      '"creationTimestamp":"t","labels":{"l":"m"},"annotations":{}},"spec":{}}',
  );
});

test("depth is counted in lists and maps alike", () => {
  assert.equal(
    [isWithin(0, 1), isWithin(0, []), isWithin(2, [{ a: 1 }]), isWithin(1, [{ a: 1 }])],
    [true, false, true, false],
  );
});

test("what is not there, or something else, reads as empty", () => {
  assert.equal([textOf(1), textOf(undefined), mapOf([1]), mapOf(null)], ["", "", {}, {}]);
  assert.equal([parseJson("{"), parseJson("null")], [undefined, null]);
});

test.run();
