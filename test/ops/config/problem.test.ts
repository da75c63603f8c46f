import { suite } from "uvu";
import * as assert from "uvu/assert";
import { didYouMean, lineOf, quote } from "../../../src/ops/config/problem.ts";

const test = suite("problem");

test("a problem is one line that an editor can jump to", () => {
  const problem = { at: "a.yaml:3:7", field: "listeners[0].name", message: "is missing" };
  assert.is(lineOf(problem), "a.yaml:3:7: listeners[0].name is missing");
  assert.is(lineOf({ ...problem, field: "" }), "a.yaml:3:7: is missing");
});

test("nothing in a file can break out of its line or paint it", () => {
  const problem = { at: "a.yaml:3:7", field: "a\nb", message: "is \u001b[31mred\u202e\r" };
  assert.is(lineOf(problem), "a.yaml:3:7: a?b is ?[31mred??");
});

test("what was probably meant is offered: two letters swapped, one missing, another case", () => {
  for (const written of ["wieght", "weigt", "Weight", "weights"])
    assert.is(didYouMean(written, ["url", "weight", "name"]), ' (did you mean "weight"?)', written);
});

test("nothing is offered when nothing is near", () => {
  assert.is(didYouMean("discovery", ["url", "name"]), "");
  assert.is(didYouMean("x".repeat(100_000), ["url"]), "");
  assert.is(didYouMean("anything", []), "");
});

test("a quoted value is short, on one line and without a password", () => {
  assert.is(quote("https://admin:secret@host"), '"https://***@host"');
  assert.is(quote("a\nb"), String.raw`"a\nb"`);
  assert.is(quote("x".repeat(1000)).length, 80);
});

test("a value that JSON cannot express is quoted by its type", () => {
  const cycle: unknown[] = [];
  cycle.push(cycle);
  assert.is(quote(cycle), "a value of type object");
  assert.is(quote(undefined), "undefined");
  assert.is(quote(Object.assign(Object.create(null), { a: 1 })), '{"a":1}');
});

test.run();
