/**
 * Parses YAML 1.2 or JSON into plain values with positions. Never throws, and takes little time for any text, because
 * the proxy parses a changed configuration on the thread that serves clients.
 */
import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, stringify } from "yaml";
import { escapeInvisible } from "../../base/json.ts";
import { configLimits } from "./limits.ts";
import { type Problem, quote } from "./problem.ts";

export type YamlDocument = {
  /** Objects in this value have no prototype, so that `__proto__` is an unknown key like any other (A58). */
  readonly value: unknown;
  /** Returns the position of the value at a JSON pointer; if there is none, of the closest value around it. */
  positionOf(pointer: string): string;
  /** Returns the position of the key at a JSON pointer; if there is none, of the closest value around it. */
  keyPositionOf(pointer: string): string;
};

export function readYaml(text: string, file: string): YamlDocument | readonly Problem[] {
  const lines = new LineCounter();
  const positionAt = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${Math.max(line, 1)}:${Math.max(col, 1)}`;
  };
  // `uniqueKeys` would compare every key with every other key (60,000 keys: 42 s). `Walk` finds repeated keys faster.
  const parsed = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false });
  const walk = new Walk(positionAt);
  const faults = [...parsed.errors, ...parsed.warnings];
  for (const { pos, code, message } of faults) {
    const isSecond = code === "MULTIPLE_DOCS";
    walk.refuse(pos[0], "", isSecond ? "is a second document in one file" : `is not YAML: ${message}`);
  }
  if (faults.length > 0) return walk.problems;
  if (parsed.contents === null) walk.refuse(0, "", "is empty");
  const value = walk.valueOf(parsed.contents, "", 0);
  if (walk.problems.length > 0) return walk.problems;
  return {
    value,
    positionOf: (pointer) => positionAt(nearest(walk.valueAt, pointer)),
    keyPositionOf: (pointer) => positionAt(walk.keyAt.get(pointer) ?? nearest(walk.valueAt, pointer)),
  };
}

export function pointerTo(parent: string, key: string | number): string {
  return `${parent}/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** Returns "clusters[0].backends[0].url" for "/clusters/0/backends/0/url". */
export function fieldOf(pointer: string): string {
  return pointer
    .slice(1)
    .replaceAll(/\/(\d+)(?=\/|$)/g, "[$1]")
    .replaceAll("/", ".")
    .replaceAll("~1", "/")
    .replaceAll("~0", "~");
}

function nearest(offsets: ReadonlyMap<string, number>, pointer: string): number {
  let at = pointer;
  while (at !== "" && !offsets.has(at)) at = at.slice(0, at.lastIndexOf("/"));
  return offsets.get(at) ?? 0;
}

class Walk {
  readonly valueAt = new Map<string, number>();
  readonly keyAt = new Map<string, number>();
  readonly problems: Problem[] = [];
  readonly #positionAt: (offset: number) => string;

  constructor(positionAt: (offset: number) => string) {
    this.#positionAt = positionAt;
  }

  refuse(offset: number, field: string, message: string): void {
    if (this.problems.length < configLimits.configProblems)
      this.problems.push({ at: this.#positionAt(offset), field, message });
  }

  valueOf(node: Node | null, pointer: string, depth: number): unknown {
    const offset = node?.range?.[0] ?? 0;
    this.valueAt.set(pointer, offset);
    if (depth > configLimits.configDepth)
      this.refuse(offset, "", `is nested deeper than ${configLimits.configDepth} levels`);
    else if (isMap<unknown, Node | null>(node)) return this.#objectOf(node.items, pointer, depth);
    else if (isSeq<Node | null>(node))
      return node.items.map((item, index) => this.valueOf(item, pointerTo(pointer, index), depth + 1));
    else if (isScalar(node)) return node.value;
    else if (isAlias(node))
      // Aliases are rejected, because a few aliases of aliases can expand to billions of values.
      this.refuse(offset, fieldOf(pointer), `is the alias ${quote(`*${node.source}`)}: write the value out`);
    return null;
  }

  #objectOf(
    items: readonly { readonly key: unknown; readonly value: Node | null }[],
    pointer: string,
    depth: number,
  ): object {
    const object: Record<string, unknown> = Object.create(null);
    for (const { key, value } of items) {
      if (!isScalar(key) || typeof key.value !== "string") {
        this.refuse(this.valueAt.get(pointer) ?? 0, fieldOf(pointer), "has a key that is not a string");
        continue;
      }
      const at = pointerTo(pointer, key.value);
      const offset = key.range?.[0] ?? 0;
      if (this.keyAt.has(at)) this.refuse(offset, fieldOf(pointer), `has the key ${quote(key.value)} twice`);
      this.keyAt.set(at, offset);
      object[key.value] = this.valueOf(value, at, depth + 1);
    }
    return object;
  }
}

/** Returns the value as YAML, with the characters escaped that a terminal may obey or hide (A53). */
export function yamlTextOf(value: unknown): string {
  const text = stringify(value);
  if (escapeInvisible(text, "yaml") === text) return text;
  // Only double-quoted strings have escapes.
  const quoted = stringify(value, { defaultStringType: "QUOTE_DOUBLE", defaultKeyType: "QUOTE_DOUBLE" });
  return escapeInvisible(quoted, "yaml");
}
