import * as assert from "uvu/assert";
import { type parse, parseAllDocuments } from "yaml";

/** An object of any kind, whose fields the assertions read. */
export type Rendered = ReturnType<typeof parse>;

/** Returns the objects, read strictly: no key twice, and no scalar that YAML 1.1 and YAML 1.2 read in two ways. */
export function objectsIn(text: string): readonly Rendered[] {
  const read = (version: "1.1" | "1.2"): Rendered[] =>
    [...parseAllDocuments(text, { version, uniqueKeys: true, merge: false })].map((document) => {
      assert.equal([...document.errors, ...document.warnings].map(String), []);
      return document.toJS();
    });
  const objects = read("1.2");
  assert.equal(read("1.1"), objects);
  return objects.filter((one) => one !== null);
}

/** Returns the objects of one kind. */
export function kindsIn(objects: readonly Rendered[], kind: string): readonly Rendered[] {
  return objects.filter((one) => one.kind === kind);
}
