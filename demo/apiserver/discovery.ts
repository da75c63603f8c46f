/** The discovery documents of the embedded apiserver: groups, versions, resources. */
import type { JsonMap } from "../objects/json.ts";
import { apiVersionOf, type Resource, resources } from "../objects/resources.ts";

const verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const groups = [...new Set(resources.map(({ group }) => group))].filter((group) => group !== "");

export function documentAt(path: string): JsonMap | undefined {
  return documents.get(path.replace(/\/+$/, "")) ?? undefined;
}

const documents: ReadonlyMap<string, JsonMap> = new Map<string, JsonMap>([
  ["/api", { kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs: [] }],
  ["/apis", { kind: "APIGroupList", apiVersion: "v1", groups: groups.map(groupOf) }],
  ...groups.map((group): [string, JsonMap] => [
    `/apis/${group}`,
    { kind: "APIGroup", apiVersion: "v1", ...groupOf(group) },
  ]),
  ...gathered(pathOf, listOf),
  ["/version", versionOf()],
  ["/openapi/v3", { paths: Object.fromEntries(gathered(pathOf, schemaLink).map(unslashed)) }],
  ...gathered((resource) => `/openapi/v3${pathOf(resource)}`, schemaOf),
]);

function pathOf(resource: Resource): string {
  return resource.group === "" ? `/api/${resource.version}` : `/apis/${apiVersionOf(resource)}`;
}

/** Groups the resources by `keyOf`. Returns each group's key, and the document that `document` makes from the group. */
function gathered(
  keyOf: (resource: Resource) => string,
  document: (rows: readonly Resource[]) => JsonMap,
): [string, JsonMap][] {
  return [...Map.groupBy(resources, keyOf)].map(([key, rows]) => [key, document(rows)]);
}

function unslashed([path, document]: [string, JsonMap]): [string, JsonMap] {
  return [path.slice(1), document];
}

function groupOf(group: string): JsonMap {
  const rows = resources.filter((row) => row.group === group);
  const versions = [...new Set(rows.map(apiVersionOf))].map((groupVersion) => ({
    groupVersion,
    version: groupVersion.slice(group.length + 1),
  }));
  return { name: group, versions, preferredVersion: versions[0] ?? {} };
}

function listOf(rows: readonly Resource[]): JsonMap {
  const [first] = rows;
  return {
    kind: "APIResourceList",
    apiVersion: "v1",
    groupVersion: first === undefined ? "" : apiVersionOf(first),
    resources: rows.map(({ plural, singular, kind, shortNames, isNamespaced }) => ({
      name: plural,
      singularName: singular,
      namespaced: isNamespaced,
      kind,
      verbs,
      shortNames,
    })),
  };
}

/** Returns a version that no Kubernetes release has, so that the demo cannot be mistaken for a real cluster. */
function versionOf(): JsonMap {
  return {
    major: "1",
    minor: "36",
    gitVersion: "v1.36.0-watchkeeper-demo",
    gitCommit: "",
    gitTreeState: "clean",
    buildDate: "1970-01-01T00:00:00Z",
    goVersion: "",
    compiler: "",
    platform: "",
  };
}

function schemaLink([first]: readonly Resource[]): JsonMap {
  return { serverRelativeURL: first === undefined ? "" : `/openapi/v3${pathOf(first)}` };
}

function schemaOf(rows: readonly Resource[]): JsonMap {
  return {
    openapi: "3.0.0",
    info: { title: "watchkeeper demo", version: "v1" },
    paths: Object.fromEntries(rows.map(patchPath)),
    components: { schemas: {} },
  };
}

/**
 * Returns an entry of the OpenAPI document: the PATCH of a resource, with the parameter `fieldValidation`. If kubectl
 * finds this parameter, it leaves the validation to the server (k8s.io/cli-runtime
 * pkg/resource/query_param_verifier_v3.go).
 */
function patchPath(resource: Resource): [string, JsonMap] {
  const { group, version, kind, plural, isNamespaced } = resource;
  const patch = {
    parameters: [{ name: "fieldValidation", in: "query", schema: { type: "string" } }],
    responses: { 200: { description: "OK" } },
    "x-kubernetes-group-version-kind": { group, version, kind },
    "x-kubernetes-action": "patch",
  };
  const below = isNamespaced ? "namespaces/{namespace}/" : "";
  return [`${pathOf(resource)}/${below}${plural}/{name}`, { patch }];
}
