/** Converts a labelSelector and a fieldSelector to a predicate on objects. */
import { isMap, type Json, jsonOf, type KubeObject } from "./json.ts";
import type { Resource } from "./resources.ts";
import { badRequest, Refusal } from "./status.ts";

export type Selector = (object: KubeObject) => boolean;

/** Returns both selectors of a query as one predicate, or a Refusal if one is invalid. */
export function selectorOf(query: URLSearchParams, resource: Resource): Selector | Refusal {
  const labels = termsOf(query.get("labelSelector") ?? "").map(labelTerm);
  const fields = termsOf(query.get("fieldSelector") ?? "").map((term) => fieldTerm(term, resource));
  const all: Selector[] = [];
  for (const term of [...labels, ...fields]) {
    if (term instanceof Refusal) return term;
    all.push(term);
  }
  return (object) => all.every((matches) => matches(object));
}

/** Splits a selector at its commas, except at those inside `in (a,b)`. */
function termsOf(text: string): string[] {
  return text
    .split(/,(?![^(]*\))/)
    .map((term) => term.trim())
    .filter((term) => term !== "");
}

const labelForms =
  /^(?:(?<set>[\w./-]+) +(?<not>not)?in +\((?<values>[^()]*)\)|(?<key>[\w./-]+) *(?<op>==?|!=) *(?<value>[\w.-]*)|(?<absent>!)? *(?<has>[\w./-]+))$/;

function labelTerm(term: string): Selector | Refusal {
  const parts = labelForms.exec(term)?.groups;
  if (parts === undefined) return badRequest(`unable to parse requirement: found '${term}'`);
  const { set, not, values = "", key, op, value = "", absent, has = "" } = parts;
  if (set !== undefined) {
    const wanted = new Set(values.split(",").map((one) => one.trim()));
    return (object) => wanted.has(label(object, set) ?? " ") === (not === undefined);
  }
  if (key !== undefined) return (object) => (label(object, key) === value) === (op !== "!=");
  return (object) => (label(object, has) === undefined) === (absent !== undefined);
}

function label({ metadata }: KubeObject, key: string): string | undefined {
  return Object.hasOwn(metadata.labels, key) ? metadata.labels[key] : undefined;
}

function fieldTerm(term: string, resource: Resource): Selector | Refusal {
  const [, path = "", op, value] = /^([\w.]+)(==?|!=)(.*)$/.exec(term) ?? [];
  if (path === "") return badRequest(`invalid selector: '${term}'; can't understand '${term}'`);
  if (!["metadata.name", "metadata.namespace", ...resource.selectable].includes(path))
    return badRequest(`field label not supported: ${path}`);
  return (object) => (textAt(object, path) === value) === (op !== "!=");
}

function textAt(object: KubeObject, path: string): string {
  let value: Json | undefined = jsonOf(object);
  for (const key of path.split(".")) value = isMap(value) ? value[key] : undefined;
  return typeof value === "string" ? value : "";
}
