/**
 * The chart's values.schema.json requires every key of values.yaml, so that a null removes nothing, and checks `config`
 * and `cluster` as the configuration's own schema does. --write copies that schema into it.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { parse, stringify } from "yaml";

const test = suite("ops/config/chart-values");
const chart = "deploy/helm/watchkeeper";
const file = `${chart}/values.schema.json`;
type Schema = { readonly [key: string]: unknown };

const isObject = (value: unknown): value is Schema => typeof value === "object" && value !== null;
const under = (value: unknown, ...path: readonly string[]): Schema => {
  const found = path.reduce<unknown>((one, key) => (isObject(one) ? one[key] : undefined), value);
  return isObject(found) && !Array.isArray(found) ? found : {};
};
const withValues = (schema: Schema, of: (value: unknown, key: string) => unknown): Schema =>
  Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, of(value, key)]));

/** Keywords that only describe, or that only watchkeeper itself understands. */
const unneeded = new Set(["title", "description", "default", "between", "format"]);

/** Patterns that RE2, by which Helm matches, does not take: look-ahead, \\u, and repetitions that multiply to over 1,000. */
const isBeyondRe2 = (pattern: unknown): boolean => /\(\?[=!<]|\\u|\)\{0,30\}/.test(String(pattern));

/**
 * Returns a schema of draft-07, which every version of Helm reads. Omits keywords beside $ref, which have no effect in
 * draft-07: most of them only describe, and the rest is checked when watchkeeper reads the configuration.
 */
function older(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(older);
  if (!isObject(schema)) return schema;
  if (typeof schema["$ref"] === "string")
    return { $ref: schema["$ref"].replace("#/$defs/", "#/definitions/") };
  const kept = Object.entries(schema).filter(
    ([key, value]) => !unneeded.has(key) && !(key === "pattern" && isBeyondRe2(value)),
  );
  return withValues(Object.fromEntries(kept), (value, key) =>
    key === "properties" ? withValues(under(value), older) : older(value),
  );
}

/** Returns the schema of a part of an object, with which the chart's own object is overwritten: no key is required. */
function partial(schema: Schema): Schema {
  const { required: _, ...rest } = schema;
  if (!isObject(rest["properties"])) return rest;
  return {
    ...rest,
    properties: withValues(under(rest, "properties"), (one) => partial(under({ one }, "one"))),
  };
}

function current(): string {
  const own: Schema = JSON.parse(readFileSync(file, "utf8"));
  const source: Schema = JSON.parse(readFileSync("config/schema/watchkeeper.v1alpha2.json", "utf8"));
  const definitions = withValues(under(source, "$defs"), older);
  const whole = under({ one: older({ type: "object", properties: source["properties"] }) }, "one");
  const config = partial({ ...whole, additionalProperties: false });
  const properties = { ...under(own, "properties"), config, cluster: partial(under(definitions, "cluster")) };
  const values: unknown = parse(readFileSync(`${chart}/values.yaml`, "utf8"));
  const required = (schema: Schema, value: unknown): Schema => ({
    ...schema,
    ...(Object.keys(under({ value }, "value")).length > 0 && schema["additionalProperties"] === false
      ? {
          required: Object.keys(under({ value }, "value")),
          properties: withValues(under(schema, "properties"), (one, key) =>
            required(under({ one }, "one"), isObject(value) ? value[key] : undefined),
          ),
        }
      : {}),
  });
  return `${JSON.stringify({ ...required({ ...own, properties }, values), definitions }, undefined, 2)}\n`;
}

if (process.argv.includes("--write")) writeFileSync(file, current());

test(`${file} is current: --write makes it so`, () => {
  assert.is(readFileSync(file, "utf8"), current());
});

test("every key of values.yaml is in its schema", () => {
  const schema: Schema = JSON.parse(readFileSync(file, "utf8"));
  const values: Schema = parse(readFileSync(`${chart}/values.yaml`, "utf8"));
  assert.equal(
    Object.keys(under(schema, "properties"))
      .filter((key) => key !== "global")
      .toSorted(),
    Object.keys(values).toSorted(),
  );
});

/** Returns all values that a schema names: members of enums, and defaults. */
function namedValues(schema: unknown): readonly unknown[] {
  if (!isObject(schema)) return [];
  const own = Array.isArray(schema["enum"]) ? schema["enum"] : [];
  return [
    ...Object.values(schema).flatMap(namedValues),
    ...own,
    ...("default" in schema ? [schema["default"]] : []),
  ];
}

test("Helm, which reads YAML 1.1 (off would become false), reads every value of the configuration as it is written", () => {
  const values = namedValues(JSON.parse(readFileSync("config/schema/watchkeeper.v1alpha2.json", "utf8")));
  const plain = values.filter((value) => typeof value !== "object");
  assert.ok(plain.length > 30, `${plain.length} values`);
  for (const value of plain) assert.equal(parse(stringify(value), { version: "1.1" }), value, String(value));
});

test.run();
