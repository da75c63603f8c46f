/** Edits YAML text. Keeps comments and order. Unlike the `yaml` package, keeps every byte of an unchanged document. */
import { type Document, isAlias, isMap, isScalar, isSeq, parseAllDocuments, YAMLMap, YAMLSeq } from "yaml";
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";

/** One YAML document. A `Place` is a list of keys that leads to a value of the document. */
export class EditedDocument {
  readonly #document: Document;
  #isChanged = false;

  constructor(document: Document) {
    this.#document = document;
  }

  get isChanged(): boolean {
    return this.#isChanged;
  }

  valueAt(place: Place): unknown {
    const node: unknown = this.#document.getIn(place, true);
    if (isMap(node) || isSeq(node)) return node.toJS(this.#document);
    return isScalar(node) ? node.value : undefined;
  }

  /**
   * Returns the first YAML alias on the path to a place; undefined: none. An edit below an alias would also change
   * every other place that uses the same anchor.
   */
  aliasOn(place: Place): string | undefined {
    for (let length = 1; length <= place.length; length++) {
      const node: unknown = this.#document.getIn(place.slice(0, length), true);
      if (isAlias(node)) return node.source;
    }
    return undefined;
  }

  /**
   * Puts `item` into the list at `place`. Replaces the item with the same value of `key`. If there is no such item,
   * adds `item` at the list's `end`.
   */
  put(
    place: Place,
    item: Item,
    { key, end }: { readonly key: string; readonly end: "first" | "last" },
  ): void {
    const list = this.#listAt(place);
    const index = list.items.findIndex((one) => isMap(one) && one.get(key) === item[key]);
    const old = list.items[index];
    if (isMap(old)) {
      if (JSON.stringify(old.toJS(this.#document)) === JSON.stringify(item)) return;
      const fresh = this.#document.createNode(item);
      fresh.commentBefore = old.commentBefore ?? null;
      list.items[index] = fresh;
    } else {
      const fresh = this.#document.createNode(item);
      list.items.splice(end === "first" ? 0 : list.items.length, 0, fresh);
    }
    this.#isChanged = true;
  }

  #listAt(place: Place): YAMLSeq {
    const there: unknown = this.#document.getIn(place, true);
    if (isSeq(there) && there.items.length > 0) return there;
    // An empty list written as [] is replaced, because otherwise new items would be written between these brackets.
    const list = new YAMLSeq(this.#document.schema);
    const parent: unknown = this.#document.getIn(place.slice(0, -1), true);
    if (!(parent instanceof YAMLMap))
      throw new TypeError(`There is no value at ${place.slice(0, -1).join(".")}`);
    parent.set(place.at(-1), list);
    return list;
  }
}

export type Place = readonly (string | number)[];
export type Item = Readonly<Record<string, unknown>>;

/** Runs `edit` on every document. Returns the changed text, or the first Failure. */
export function editYaml(
  text: string,
  edit: (document: EditedDocument) => Failure | undefined,
): string | Failure {
  if (text.length > limits.manifestBytes) return bad(`is larger than ${limits.manifestBytes} bytes`);
  const documents = parseAllDocuments(text, { keepSourceTokens: false });
  if (!Array.isArray(documents)) return bad("is empty");
  let edited = "";
  let from = 0;
  for (const document of documents) {
    const [error] = document.errors;
    if (error !== undefined) return bad(`is not YAML: ${error.message.split("\n")[0]}`);
    const one = new EditedDocument(document);
    const failure = edit(one);
    if (failure !== undefined) return failure;
    const [, , end] = document.range;
    edited += one.isChanged ? document.toString(styleOf(text)) : text.slice(from, end);
    from = end;
  }
  return edited + text.slice(from);
}

function bad(message: string): Failure {
  return new Failure("bad-file", "client", `The file ${message}`);
}

function styleOf(text: string): { lineWidth: number; indentSeq: boolean; flowCollectionPadding: boolean } {
  const [, outer = "", inner = "  "] = /^( *)[^\s#-][^\n]*:[ \t]*\r?\n( *)- /m.exec(text) ?? [];
  return {
    lineWidth: 0,
    indentSeq: inner.length > outer.length,
    flowCollectionPadding: /[{[] \S/.test(text),
  };
}
