import { suite } from "uvu";
import * as assert from "uvu/assert";
import { isRecord, parseJson, recordAt, textAt } from "../../src/base/json.ts";

const test = suite("base/json");

test("text that is not JSON is undefined", () => {
  assert.equal(parseJson('{"a":[1]}'), { a: [1] });
  for (const text of ["", "{", "a: 1", '{"a":1}x']) assert.is(parseJson(text), undefined, text);
});

test("only an object is a record, and only a string is text", () => {
  assert.ok(isRecord({}));
  for (const value of [null, undefined, [], "a", 1]) assert.not(isRecord(value), String(value));
  const parent = { object: { a: 1 }, list: [1], nothing: null, text: "a", number: 1 };
  assert.equal(recordAt(parent, "object"), { a: 1 });
  for (const key of ["list", "nothing", "text", "none"]) assert.is(recordAt(parent, key), undefined, key);
  assert.is(recordAt(undefined, "object"), undefined);
  assert.is(textAt(parent, "text"), "a");
  for (const key of ["object", "number", "nothing", "none"]) assert.is(textAt(parent, key), "", key);
  assert.is(textAt(undefined, "text"), "");
});

test.run();
