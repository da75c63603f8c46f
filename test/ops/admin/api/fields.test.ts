import { suite } from "uvu";
import * as assert from "uvu/assert";
import { schemas } from "../../../../src/ops/admin/api/openapi.ts";

const test = suite("ops/admin/api/fields");

type Node = { readonly [key: string]: unknown };

/** Returns every object schema in a schema, at any depth. */
function objectsIn(node: unknown): Node[] {
  if (typeof node !== "object" || node === null) return [];
  const all = Object.values(node).flatMap(objectsIn);
  return "properties" in node ? [{ ...node }, ...all] : all;
}

test("every field says what it is", () => {
  for (const [name, schema] of Object.entries(schemas))
    for (const { properties } of objectsIn(schema))
      for (const [field, one] of Object.entries(properties ?? {}))
        assert.ok(
          ["const", "properties", "$ref", "description"].some((key) => key in one),
          `${name}.${field}`,
        );
});

test("an object has all its fields and no others", () => {
  for (const schema of Object.values(schemas).flatMap(objectsIn)) {
    assert.is(schema["additionalProperties"], false);
    assert.equal(schema["required"], Object.keys(schema["properties"] ?? {}));
  }
});

test.run();
