/**
 * The patch formats of clients: JSON Patch (RFC 6902), merge patch (RFC 7386), and approximations of Kubernetes' own
 * two: a strategic merge uses only `name` as the key of a list, and an apply is a strategic merge without field owners.
 */

import { isList, isMap, type Json, type JsonMap, mapOf, textOf } from "./json.ts";
import { jsonPatch } from "./json-patch.ts";

type Patch = (before: Json, patch: Json) => Json | undefined;

/** By content type; a patch that does not fit its object returns undefined. */
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
    // `$patch`, `$setElementOrder/...` and similar keys control a merge; they are no fields.
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
