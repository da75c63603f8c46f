/**
 * Applies patches: JSON Patch (RFC 6902), merge patch (RFC 7386), and approximations of Kubernetes' own two types.
 * Here, a strategic merge identifies the items of a list only by `name`, and an apply is a strategic merge without
 * field owners.
 */
import { isList, isMap, type Json, type JsonMap, mapOf, textOf } from "./json.ts";

type Patch = (before: Json, patch: Json) => Json | undefined;

/** Patch functions by content type. A function returns undefined if the patch does not fit the object. */
export const patches: ReadonlyMap<string, Patch> = new Map<string, Patch>([
  ["application/json-patch+json", jsonPatch],
  ["application/merge-patch+json", (before, patch) => merge(before, patch, replaceList)],
  ["application/strategic-merge-patch+json", (before, patch) => merge(before, patch, mergeList)],
  ["application/apply-patch+yaml", (before, patch) => merge(before, patch, mergeList)],
]);

type ListRule = (before: Json | undefined, patch: readonly Json[]) => Json;

function merge(before: Json | undefined, patch: Json, listRule: ListRule): Json {
  if (isList(patch)) return listRule(before, patch);
  if (!isMap(patch)) return patch;
  const merged = new Map(Object.entries(mapOf(before)));
  for (const [key, value] of Object.entries(patch)) {
    // Keys such as `$patch` and `$setElementOrder/...` control the merge and are no fields of the object.
    if (key.startsWith("$")) continue;
    if (value === null) merged.delete(key);
    else merged.set(key, merge(merged.get(key), value, listRule));
  }
  return Object.fromEntries(merged);
}

function replaceList(_before: Json | undefined, patch: readonly Json[]): Json {
  return patch;
}

function mergeList(before: Json | undefined, patch: readonly Json[]): Json {
  const named = patch.filter(isNamed);
  if (named.length < patch.length || !isList(before) || !before.every(isNamed)) return patch;
  const items = new Map<string, Json>(before.map((item) => [textOf(item["name"]), item]));
  for (const item of named) {
    const name = textOf(item["name"]);
    if (item["$patch"] === "delete") items.delete(name);
    else items.set(name, merge(items.get(name), item, mergeList));
  }
  return [...items.values()];
}

function isNamed(item: Json): item is JsonMap {
  return isMap(item) && typeof item["name"] === "string";
}

function jsonPatch(before: Json, patch: Json): Json | undefined {
  if (!isList(patch)) return undefined;
  let value: Json | undefined = before;
  for (const step of patch) {
    if (value === undefined || !isMap(step)) return undefined;
    value = operations.get(textOf(step["op"]))?.(value, step);
  }
  return value;
}

type Operation = (before: Json, step: JsonMap) => Json | undefined;

const operations: ReadonlyMap<string, Operation> = new Map<string, Operation>([
  ["add", (before, step) => add(before, pointer(step["path"]), step["value"])],
  ["remove", (before, step) => take(before, pointer(step["path"]))],
  ["replace", (before, step) => replace(before, pointer(step["path"]), step["value"])],
  ["copy", (before, step) => add(before, pointer(step["path"]), at(before, pointer(step["from"])))],
  ["move", move],
  ["test", (before, step) => (isSame(at(before, pointer(step["path"])), step["value"]) ? before : undefined)],
]);

function move(before: Json, step: JsonMap): Json | undefined {
  const from = pointer(step["from"]);
  const rest = take(before, from);
  return rest === undefined ? undefined : add(rest, pointer(step["path"]), at(before, from));
}

function isSame(a: Json | undefined, b: Json | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Returns the keys of a JSON pointer (RFC 6901), in which `~1` is a slash and `~0` a tilde. */
function pointer(text: Json | undefined): string[] {
  const parts = textOf(text).split("/").slice(1);
  return parts.map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function at(value: Json | undefined, path: readonly string[]): Json | undefined {
  let here = value;
  for (const key of path) here = here === undefined ? undefined : childOf(here, key);
  return here;
}

function childOf(value: Json, key: string): Json | undefined {
  if (isList(value)) return value[indexOf(key)];
  return isMap(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

function indexOf(key: string): number {
  return /^(0|[1-9]\d*)$/.test(key) ? Number(key) : -1;
}

/**
 * Changes `parent`, which is a list or a map, at `key`. Returns the changed copy; undefined: `parent` has no such key.
 */
type Edit = (parent: Json, key: string) => Json | undefined;

function edited(value: Json, path: readonly string[], edit: Edit): Json | undefined {
  const [key, ...rest] = path;
  if (key === undefined) return undefined;
  if (rest.length === 0) return edit(value, key);
  const child = childOf(value, key);
  const inner = child === undefined ? undefined : edited(child, rest, edit);
  return inner === undefined ? undefined : withChild(value, key, inner);
}

function withChild(value: Json, key: string, child: Json): Json {
  return isList(value) ? value.with(indexOf(key), child) : { ...mapOf(value), [key]: child };
}

function add(value: Json, path: readonly string[], what: Json | undefined): Json | undefined {
  if (what === undefined || path.length === 0) return what;
  return edited(value, path, (parent, key) => {
    if (isMap(parent)) return Object.fromEntries([...Object.entries(parent), [key, what]]);
    if (!isList(parent)) return undefined;
    const index = key === "-" ? parent.length : indexOf(key);
    return index < 0 || index > parent.length ? undefined : parent.toSpliced(index, 0, what);
  });
}

function replace(value: Json, path: readonly string[], what: Json | undefined): Json | undefined {
  if (what === undefined || path.length === 0) return what;
  return edited(value, path, (parent, key) =>
    childOf(parent, key) === undefined ? undefined : withChild(parent, key, what),
  );
}

function take(value: Json, path: readonly string[]): Json | undefined {
  return edited(value, path, (parent, key) => {
    if (childOf(parent, key) === undefined) return undefined;
    if (isList(parent)) return parent.toSpliced(indexOf(key), 1);
    return Object.fromEntries(Object.entries(mapOf(parent)).filter(([name]) => name !== key));
  });
}
