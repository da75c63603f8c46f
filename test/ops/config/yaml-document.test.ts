import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { isProblems, lineOf } from "../../../src/ops/config/problem.ts";
import { fieldOf, pointerTo, readYaml, type YamlDocument } from "../../../src/ops/config/yaml-document.ts";
import { cpuMs } from "../../support/cpu.ts";

const test = suite("yaml-document");

function documentOf(text: string): YamlDocument {
  const outcome = readYaml(text, "a.yaml");
  if (isProblems(outcome)) throw new Error(outcome.map((problem) => lineOf(problem)).join("\n"));
  return outcome;
}

function linesOf(text: string): string[] {
  const outcome = readYaml(text, "a.yaml");
  return isProblems(outcome) ? outcome.map((problem) => lineOf(problem)) : [];
}

test("every value and key remembers where it stood", () => {
  const document = documentOf("a:\n  - b: 1\n    c/d: x\n");
  assert.is(document.positionOf("/a/0/b"), "a.yaml:2:8");
  assert.is(document.keyPositionOf(pointerTo("/a/0", "c/d")), "a.yaml:3:5");
});

test("a value that was not written stands where the nearest thing around it does", () => {
  const document = documentOf("a:\n  b: {c: 1}\n");
  assert.is(document.positionOf("/a/b/missing/deeper"), "a.yaml:2:6");
  assert.is(document.keyPositionOf("/nothing"), "a.yaml:1:1");
});

test("JSON is YAML", () => {
  assert.equal(JSON.stringify(documentOf('{"a": [1, true, null]}').value), '{"a":[1,true,null]}');
});

test("a pointer becomes a field path as Kubernetes writes it", () => {
  assert.is(fieldOf("/clusters/0/backends/0/url"), "clusters[0].backends[0].url");
  assert.is(fieldOf("/a~1b/10/2/~0"), "a/b[10][2].~");
});

test("every duplicate key is named with its place", () => {
  assert.equal(linesOf("a: 1\nb: {c: 1, c: 2}\na: 2\n"), [
    'a.yaml:2:11: b has the key "c" twice',
    'a.yaml:3:1: has the key "a" twice',
  ]);
});

test("tabs, half-written text, two documents and foreign tags are refused as YAML", () => {
  assert.match(linesOf("a:\n\tb: 1\n")[0] ?? "", /^a\.yaml:2:1: is not YAML: Tabs/);
  assert.match(linesOf("a: [1,\n")[0] ?? "", /^a\.yaml:2:1: is not YAML/);
  assert.equal(linesOf("a: 1\n---\nb: 2\n"), ["a.yaml:2:1: is a second document in one file"]);
  assert.match(linesOf('a: !!js/function "x"\n')[0] ?? "", /^a\.yaml:1:4: is not YAML: Unresolved tag/);
});

test("an alias is refused, so that no few lines stand for billions of values", () => {
  const bomb = "a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: [*b,*b,*b]\n";
  assert.is(linesOf(bomb)[0], 'a.yaml:2:8: b[0] is the alias "*a": write the value out');
  assert.is(linesOf("a: &a\n  b: *a\n").length, 1);
});

test("__proto__ is a key like any other and changes no prototype (A58)", () => {
  const { value } = documentOf(
    '{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}',
  );
  assert.is(Object.getPrototypeOf(value), null);
  assert.equal(Object.keys(value as object), ["__proto__", "constructor"]);
  assert.is(({} as { polluted?: number }).polluted, undefined);
});

test("keys that are no text are refused", () => {
  assert.equal(linesOf("? [a]\n: 1\n"), ["a.yaml:1:1: has a key that is not a string"]);
  assert.is(linesOf("1: a\n").length, 1);
});

test("deep nesting and masses of keys are answered without delay", () => {
  const texts = [
    "[".repeat(limits.configBytes),
    "- ".repeat(limits.configBytes / 2),
    "a: ]\n".repeat(limits.configBytes / 5),
    `${"{a: ".repeat(17)}1${"}".repeat(17)}`,
    Array.from({ length: 7000 }, (_, index) => `k${index}: 1`).join("\n"),
  ];
  let refused: boolean[] = [];
  const tookMs = cpuMs(() => {
    refused = texts.map((text) => linesOf(text).length > 0);
  });
  assert.equal(refused, [true, true, true, true, false]);
  assert.ok(tookMs < 5000, `${tookMs} ms`);
});

test.run();
