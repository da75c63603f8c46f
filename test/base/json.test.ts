import { suite } from "uvu";
import * as assert from "uvu/assert";
import { isRecord, JsonLines, type JsonRecord, parseJson, recordAt, textAt } from "../../src/base/json.ts";

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

/** Reads these pieces as JSON lines of at most 12 bytes. Returns the messages. */
function read(
  pieces: readonly string[],
  goesOn = true,
): { got: unknown[]; isFit: boolean; pendingBytes: number } {
  const lines = new JsonLines(12);
  const got: (JsonRecord | undefined)[] = [];
  const each = (message: JsonRecord | undefined): boolean => {
    got.push(message);
    return goesOn;
  };
  const isFit = pieces.map((piece) => lines.take(Buffer.from(piece), each)).every(Boolean);
  return { got, isFit, pendingBytes: lines.pendingBytes };
}

test("lines are cut wherever their bytes are split, and one that is no object is undefined", () => {
  const text = '{"a":1}\n\n[1]\n{"b":"\u00fc"}\n{"c"';
  const got = [{ a: 1 }, undefined, undefined, { b: "\u00fc" }];
  for (let at = 0; at <= text.length; at += 1)
    assert.equal(read([text.slice(0, at), text.slice(at)]), { got, isFit: true, pendingBytes: 4 });
});

test("a line that is too long is not kept, and no line is read after its reader has enough", () => {
  assert.equal(read(['{"a":1}\n{"aa', 'aaaaa":1}']).isFit, false);
  assert.equal(read(['{"aaaaaaaa":1}\n']), { got: [], isFit: false, pendingBytes: 14 });
  assert.equal(read(['{"a":1}\n{"b":1}\n'], false), { got: [{ a: 1 }], isFit: true, pendingBytes: 0 });
});

test.run();
