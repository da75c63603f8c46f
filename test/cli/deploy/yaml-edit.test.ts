import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { limits } from "../../../src/base/limits.ts";
import { type EditedDocument, editYaml, type Item } from "../../../src/cli/deploy/yaml-edit.ts";

const test = suite("cli/deploy/yaml-edit");

const put =
  (item: Item, end: "first" | "last" = "last") =>
  (document: EditedDocument): void =>
    document.put(["list"], item, { key: "name", end });

function edited(text: string, edit: (document: EditedDocument) => void): string {
  const outcome = editYaml(text, (document) => {
    edit(document);
    return undefined;
  });
  if (outcome instanceof Failure) throw new Error(outcome.message);
  return outcome;
}

test("an untouched file keeps every byte, whatever its style", () => {
  for (const text of [
    "a:   1  # x\n",
    "%YAML 1.2\n---\na: >-\n  b\n  c\n...\n# end\n",
    '{"a":1}',
    "a: 1\r\nb: 2\r\n",
  ])
    assert.is(
      edited(text, () => {}),
      text,
    );
});

test("an item is put into a list that is there, or empty, or missing", () => {
  assert.is(edited("list:\n- name: a\n", put({ name: "b" })), "list:\n- name: a\n- name: b\n");
  assert.is(edited("list:\n- name: a\n", put({ name: "b" }, "first")), "list:\n- name: b\n- name: a\n");
  assert.is(edited("x: 1\nlist: []\n", put({ name: "b" })), "x: 1\nlist:\n  - name: b\n");
  assert.is(edited("x: 1\n", put({ name: "b" })), "x: 1\nlist:\n  - name: b\n");
});

test("an item that is there as it should be is left alone, and another one replaced in its place", () => {
  const text = "list:\n- # why\n  name:   a\n- name: b\n";
  assert.is(edited(text, put({ name: "a" })), text);
  assert.is(
    edited("list:\n- name: a\n  v: 1\n- name: b\n", put({ name: "a", v: 2 })),
    "list:\n- name: a\n  v: 2\n- name: b\n",
  );
});

test("values are read, aliases found", () => {
  editYaml("a: {b: [1, x]}\nc: &n {d: 1}\ne: *n\n", (document) => {
    assert.equal(document.valueAt(["a"]), { b: [1, "x"] });
    assert.is(document.valueAt(["a", "b", 1]), "x");
    assert.equal([document.aliasOn(["a", "b"]), document.aliasOn(["e", "d"])], [undefined, "n"]);
    return undefined;
  });
});

test("a file that is too large, broken, or refused is a Failure", () => {
  const large = `a: ${"x".repeat(limits.manifestBytes)}`;
  for (const text of [large, "a: [", "a: 1\n---\nb: ]\n"])
    assert.instance(
      editYaml(text, () => undefined),
      Failure,
    );
  const refusal = new Failure("bad-file", "client", "no");
  assert.is(
    editYaml("a: 1\n", () => refusal),
    refusal,
  );
});

test.run();
