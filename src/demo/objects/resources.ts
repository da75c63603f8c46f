/** The resources of the embedded apiserver, and how paths name them. */

export type Resource = {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly shortNames: readonly string[];
  readonly isNamespaced: boolean;
  /** Field paths that a fieldSelector may use, besides metadata.name and metadata.namespace. */
  readonly selectable: readonly string[];
};

function core(plural: string, kind: string, shortNames: string[], selectable: string[] = []): Resource {
  return {
    group: "",
    version: "v1",
    plural,
    singular: kind.toLowerCase(),
    kind,
    shortNames,
    isNamespaced: plural !== "namespaces",
    selectable,
  };
}

/** Referred to by name when an object is created in a namespace. */
export const namespaces: Resource = core("namespaces", "Namespace", ["ns"], ["status.phase"]);

export const resources: readonly Resource[] = [
  namespaces,
  core("configmaps", "ConfigMap", ["cm"]),
  core(
    "events",
    "Event",
    ["ev"],
    ["involvedObject.kind", "involvedObject.name", "involvedObject.namespace", "involvedObject.uid"],
  ),
  core("pods", "Pod", ["po"], ["spec.nodeName", "status.phase"]),
  core("secrets", "Secret", [], ["type"]),
  {
    ...core("leases", "Lease", []),
    group: "coordination.k8s.io",
  },
];

export function apiVersionOf({ group, version }: Resource): string {
  return group === "" ? version : `${group}/${version}`;
}

/** The target of a path: a collection, one object, or a subresource. */
export type Target = {
  readonly resource: Resource;
  /** Undefined: all namespaces, or a cluster-scoped resource. */
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
  /** The deprecated `/watch/` prefix makes every GET below it a watch, whatever the query contains. */
  readonly isWatchPath: boolean;
};

/** Returns the target of `/api/v1/...` or `/apis/GROUP/VERSION/...`, or undefined for a resource that is not served. */
export function targetOf(segments: readonly string[]): Target | undefined {
  const [root = "", ...below] = segments;
  const prefix = root === "apis" ? below.splice(0, 2).join("/") : root === "api" ? below.shift() : undefined;
  const isWatchPath = below[0] === "watch";
  if (isWatchPath) below.shift();
  const namespace = namespaceOf(below);
  const [plural, name, subresource] = namespace === undefined ? below : below.slice(2);
  const resource = resources.find((row) => apiVersionOf(row) === prefix && row.plural === plural);
  if (resource === undefined || !isPlaced(resource, namespace, name)) return undefined;
  return { resource, namespace, name, subresource, isWatchPath };
}

/** `namespaces/NAME/...` is a scope, unless the rest belongs to the namespace object itself. */
function namespaceOf([first, second, third]: readonly string[]): string | undefined {
  const isScope = first === "namespaces" && third !== undefined && third !== "status" && third !== "finalize";
  return isScope ? second : undefined;
}

/** A namespaced object exists only below its namespace; a cluster-scoped one never does. */
function isPlaced(
  { isNamespaced }: Resource,
  namespace: string | undefined,
  name: string | undefined,
): boolean {
  return isNamespaced ? namespace !== undefined || name === undefined : namespace === undefined;
}
