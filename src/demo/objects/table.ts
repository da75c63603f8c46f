/** Objects as the rows that `kubectl get` prints: the server creates a Table, and kubectl only aligns it. */
import { wallOf } from "../../base/clock.ts";
import { type Json, type JsonMap, type KubeObject, mapOf, metadataOf } from "./json.ts";
import type { Resource } from "./resources.ts";

type Column = { readonly name: string; readonly cell: (object: KubeObject, wallMs: number) => Json };

const age: Column = {
  name: "Age",
  cell: ({ metadata }, wallMs) => duration(wallMs - wallOf(metadata.creationTimestamp)),
};
const dataCount: Column = { name: "Data", cell: ({ fields }) => Object.keys(mapOf(fields["data"])).length };

function textAt(name: string, ...path: readonly string[]): Column {
  const cell = ({ fields }: KubeObject): Json => {
    let value: Json = fields;
    for (const key of path) value = mapOf(value)[key] ?? "";
    return value;
  };
  return { name, cell };
}

/** The columns between the name and the age. */
const columns: ReadonlyMap<string, readonly Column[]> = new Map([
  ["namespaces", [textAt("Status", "status", "phase")]],
  ["configmaps", [dataCount]],
  ["secrets", [textAt("Type", "type"), dataCount]],
  ["pods", [textAt("Status", "status", "phase")]],
  ["events", [textAt("Type", "type"), textAt("Reason", "reason"), textAt("Message", "message")]],
  ["leases", [textAt("Holder", "spec", "holderIdentity")]],
]);

function columnsOf(resource: Resource): Column[] {
  const name: Column = { name: "Name", cell: ({ metadata }) => metadata.name };
  return [name, ...(columns.get(resource.plural) ?? []), age];
}

/** `meta.k8s.io/v1` Table. In a watch only the first one contains the column definitions. */
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

export function partialOf(object: KubeObject): JsonMap {
  return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: metadataOf(object) };
}

/** Like k8s.io/apimachinery's HumanDuration: the finer unit is omitted for longer times. */
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
