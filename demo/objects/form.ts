/** Renders objects in the form that a client's Accept header requests, such as a Table with the rows of `kubectl get`. */
import { wallOf } from "../../src/base/clock.ts";
import { type Json, type JsonMap, jsonOf, type KubeObject, mapOf, metadataOf } from "./json.ts";
import { apiVersionOf, type Resource } from "./resources.ts";

export type Form = "plain" | "partial" | "table";

const json = new Set(["application/json", "application/*", "*/*", ""]);
export const offered = "application/json";

/**
 * Returns the form of the first supported entry in an Accept header; undefined: no entry is supported (406). Clients
 * that prefer protobuf or CBOR accept JSON as well.
 */
export function formOf(accept: string): Form | undefined {
  for (const entry of accept.split(",")) {
    const [type = "", ...parameters] = entry.split(";").map((part) => part.trim());
    const as = parameters.find((parameter) => parameter.startsWith("as="));
    if (!json.has(type)) continue;
    if (as === undefined) return "plain";
    if (!parameters.includes("g=meta.k8s.io")) continue;
    if (as === "as=Table") return "table";
    if (as.startsWith("as=PartialObjectMetadata")) return "partial";
  }
  return undefined;
}

/** How objects are rendered. `wallMs`: the time in ms since 1970, for the column Age. */
export type Rendering = { readonly resource: Resource; readonly form: Form; readonly wallMs: number };

export function renderObject(object: KubeObject, rendering: Rendering, hasColumns = true): JsonMap {
  const { resource, form, wallMs } = rendering;
  if (form === "plain") return jsonOf(object);
  if (form === "partial") return partialOf(object);
  return tableOf(resource, [object], { version: object.metadata.resourceVersion, wallMs, hasColumns });
}

export function renderList(objects: readonly KubeObject[], version: number, rendering: Rendering): JsonMap {
  const { resource, form, wallMs } = rendering;
  if (form === "table")
    return tableOf(resource, objects, { version: String(version), wallMs, hasColumns: true });
  const partial = form === "partial";
  return {
    kind: partial ? "PartialObjectMetadataList" : `${resource.kind}List`,
    apiVersion: partial ? "meta.k8s.io/v1" : apiVersionOf(resource),
    metadata: { resourceVersion: String(version) },
    items: objects.map(partial ? partialOf : jsonOf),
  };
}

type TableColumn = { readonly name: string; readonly cell: (object: KubeObject, wallMs: number) => Json };

const age: TableColumn = {
  name: "Age",
  cell: ({ metadata }, wallMs) => duration(wallMs - wallOf(metadata.creationTimestamp)),
};
const dataCount: TableColumn = {
  name: "Data",
  cell: ({ fields }) => Object.keys(mapOf(fields["data"])).length,
};

function textAt(name: string, ...path: readonly string[]): TableColumn {
  const cell = ({ fields }: KubeObject): Json => {
    let value: Json = fields;
    for (const key of path) value = mapOf(value)[key] ?? "";
    return value;
  };
  return { name, cell };
}

/** Columns of a Table between Name and Age, by resource. */
const columns: ReadonlyMap<string, readonly TableColumn[]> = new Map([
  ["namespaces", [textAt("Status", "status", "phase")]],
  ["configmaps", [dataCount]],
  ["secrets", [textAt("Type", "type"), dataCount]],
  ["pods", [textAt("Status", "status", "phase")]],
  ["events", [textAt("Type", "type"), textAt("Reason", "reason"), textAt("Message", "message")]],
  ["leases", [textAt("Holder", "spec", "holderIdentity")]],
]);

function columnsOf(resource: Resource): TableColumn[] {
  const name: TableColumn = { name: "Name", cell: ({ metadata }) => metadata.name };
  return [name, ...(columns.get(resource.plural) ?? []), age];
}

/** Returns a `meta.k8s.io/v1` Table. In a watch, only the first Table has column definitions. */
export function tableOf(
  resource: Resource,
  objects: readonly KubeObject[],
  head: { readonly version: string; readonly wallMs: number; readonly hasColumns: boolean },
): JsonMap {
  const shown = columnsOf(resource);
  const rows = objects.map((object) => ({
    cells: shown.map(({ cell }) => cell(object, head.wallMs)),
    object: partialOf(object),
  }));
  const definitions = shown.map(({ name }) => ({
    name,
    type: name === "Data" ? "integer" : "string",
    format: name === "Name" ? "name" : "",
    description: "",
    priority: 0,
  }));
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata: { resourceVersion: head.version },
    columnDefinitions: head.hasColumns ? definitions : null,
    rows,
  };
}

function partialOf(object: KubeObject): JsonMap {
  return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: metadataOf(object) };
}

/** Formats a duration as HumanDuration of k8s.io/apimachinery does: "5m30s", but "12m" from ten minutes on. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const days = Math.floor(hours / 24);
  if (seconds < 120) return `${seconds}s`;
  if (minutes < 10) return `${minutes}m${unless0(seconds % 60, "s")}`;
  if (hours < 3) return `${minutes}m`;
  if (hours < 8) return `${hours}h${unless0(minutes % 60, "m")}`;
  if (hours < 48) return `${hours}h`;
  if (days < 8) return `${days}d${unless0(hours % 24, "h")}`;
  return `${days}d`;
}

function unless0(count: number, unit: string): string {
  return count === 0 ? "" : `${count}${unit}`;
}
