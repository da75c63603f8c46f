/** Declares the resources that the embedded apiserver serves, and parses their paths. */
export type Resource = {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly shortNames: readonly string[];
  readonly isNamespaced: boolean;
  /** Fields that a fieldSelector may use besides metadata.name and metadata.namespace. */
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

export type Target = {
  readonly resource: Resource;
  /** The namespace in the path; undefined: the request is for all namespaces, or the resource is cluster-scoped. */
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
  /** True if the path has the deprecated prefix `/watch/`, which makes every GET a watch. */
  readonly isWatchPath: boolean;
};

/** Returns the target of `/api/v1/...` or `/apis/GROUP/VERSION/...`; undefined: the resource is not served. */
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

/** Returns the namespace in `namespaces/NAME/...`; undefined if the path names the namespace object itself. */
function namespaceOf([first, second, third]: readonly string[]): string | undefined {
  const isScope = first === "namespaces" && third !== undefined && third !== "status" && third !== "finalize";
  return isScope ? second : undefined;
}

/**
 * True if the path is valid for the resource: the path of a single namespaced object must contain a namespace, and the
 * path of a cluster-scoped resource must not.
 */
function isPlaced(
  { isNamespaced }: Resource,
  namespace: string | undefined,
  name: string | undefined,
): boolean {
  return isNamespaced ? namespace !== undefined || name === undefined : namespace === undefined;
}
