/**
 * The inputs of which the requests are made: valid ones that clients really send, and invalid ones. `{ns}` is the
 * side's namespace.
 */
import type { Field } from "./send.ts";

export const bearer = (token: string): Field => ["authorization", `Bearer ${token}`];
export const admin = bearer("admin-token-of-the-rig");

const protobuf = "application/vnd.kubernetes.protobuf";
const table = "application/json;as=Table;v=v1;g=meta.k8s.io";
const partial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const partialList = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

export const accepts: readonly (readonly string[])[] = [
  [],
  ["application/json"],
  [protobuf],
  [`${protobuf},application/json`],
  ["application/yaml"],
  [table],
  [`${table},application/json`],
  [partial],
  [partialList],
  [`${protobuf};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io`],
  ["*/*"],
  ["text/html"],
  ["application/cbor"],
  ["application/json", "application/yaml"], // two fields: Go's Header.Get returns only the first
  ["application/yaml", "application/json"],
  ["application/json;q=0.1, application/yaml;q=0.9"],
  ["", "application/json"],
  ["nonsense"],
];

export const collections = [
  "/api/v1/namespaces/{ns}/configmaps",
  "/api/v1/namespaces/{ns}/secrets",
  "/api/v1/namespaces/{ns}/pods",
  "/api/v1/namespaces/{ns}/services",
  "/apis/apps/v1/namespaces/{ns}/deployments",
  "/apis/rbac.authorization.k8s.io/v1/clusterroles",
  "/apis/scheduling.k8s.io/v1/priorityclasses",
  "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
];

export const things = [
  "/api/v1/namespaces/{ns}",
  "/api/v1/namespaces/{ns}/configmaps/fixed-0",
  "/api/v1/namespaces/{ns}/configmaps/large",
  "/api/v1/namespaces/{ns}/configmaps/missing",
  "/api/v1/namespaces/{ns}/pods/echo",
  "/api/v1/namespaces/{ns}/pods/echo/status",
  "/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin",
  "/apis/apps/v1/namespaces/{ns}/deployments/web/scale",
];

export const documents = [
  "/",
  "/api",
  "/apis",
  "/api/v1",
  "/apis/apps",
  "/apis/apps/v1",
  "/version",
  "/readyz",
  "/readyz?verbose",
  "/livez/ping",
  "/healthz/etcd",
  "/openapi/v2",
  "/openapi/v3",
  "/openapi/v3/apis/apps/v1",
  "/.well-known/openid-configuration",
  "/openid/v1/jwks",
  "/nonsense",
  "/apis/nobody.example/v1/things",
];

export const queries = [
  "",
  "?limit=1",
  "?limit=3&resourceVersion=0",
  "?resourceVersion=0",
  "?resourceVersion=nonsense",
  "?resourceVersionMatch=Exact",
  "?labelSelector=group%3Deven",
  "?labelSelector=group+in+(even,odd)",
  "?labelSelector=%3D%3D",
  "?fieldSelector=metadata.name%3Dfixed-1",
  "?fieldSelector=nonsense%3D1",
  "?pretty=true",
  "?pretty",
  "?limit=nonsense",
  "?continue=nonsense",
  "?limit=1&limit=2",
  "?Limit=1",
  "?limit=1;limit=2",
  "?%6cimit=1",
  "?a=%zz",
  "?a=%",
  "?&&=&",
  "?a=b=c&d=%26%3D%00",
  "??limit=1",
  "?includeObject=None",
  "?includeObject=Object",
  "?timeoutSeconds=5",
  "?fieldManager=x%20y",
  `?x=${"long".repeat(1_000)}`,
];

/**
 * Paths with %2f, //, dot segments, trailing slashes, other letter case, unnecessary escapes, and bytes outside ASCII.
 */
export const oddPaths = [
  "//api/v1/namespaces/{ns}/configmaps",
  "/api//v1/namespaces/{ns}/configmaps",
  "/api/v1/namespaces//{ns}/configmaps",
  "/api/v1/namespaces/{ns}/configmaps/",
  "/api/v1/namespaces/{ns}/configmaps//",
  "/api/v1/namespaces/{ns}/configmaps/fixed-0/",
  "/api/v1/namespaces/{ns}%2fconfigmaps",
  "/api/v1/namespaces/{ns}%2Fconfigmaps/fixed-0",
  "/api/v1/namespaces/{ns}/configmaps/fixed%2d0",
  "/api/v1/namespaces/{ns}/configmaps/fixed%252d0",
  "/%61pi/v1/namespaces/{ns}/configmaps/fixed-0",
  "/api/v1/./namespaces/{ns}/configmaps/fixed-0",
  "/api/v1/nodes/../namespaces/{ns}/configmaps",
  "/api/v1/namespaces/{ns}/configmaps/..",
  "/api/v1/namespaces/{ns}/configmaps/.",
  "/../api/v1",
  "/..%2fapi/v1",
  "/api/v1/namespaces/{ns}/configmaps/%2e%2e/secrets",
  "/API/v1/namespaces",
  "/api/v1/Namespaces",
  "/api/v1/namespaces/{ns}/configmaps/na%C3%AFve",
  "/api/v1/namespaces/{ns}/configmaps/na%zzve",
  "/api/v1/namespaces/{ns}/configmaps/a;b=c",
  "/api/v1/namespaces/{ns}/configmaps/a%20b",
  "/api/v1/namespaces/{ns}/configmaps/a+b",
  "/api/v1/namespaces/{ns}/configmaps/a%00b",
  "/api/v1/namespaces/{ns}/configmaps/fixed-0?",
  "/api/v1/namespaces/{ns}/configmaps/fixed-0/nonsense",
  "/api/v1/watch/nonsense/things",
  "/apis//apps/v1",
  "/apis/apps/v1/",
  "/version/",
  "/version//",
  "/readyz/",
  "/a|b^c`d{e}",
  `/${"long/".repeat(400)}`,
];

export const methods = [
  "HEAD",
  "OPTIONS",
  "TRACE",
  "FOO",
  "get",
  "PROPFIND",
  "LOCK",
  "PUT",
  "DELETE",
  "POST",
  "PATCH",
];

export function configMap(name: string, data: Record<string, string>, more: object = {}): Buffer {
  const metadata = { name, namespace: "{ns}", ...more };
  return Buffer.from(JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata, data }));
}

export const contentTypes = [
  "application/json",
  "application/json; charset=utf-8",
  "application/yaml",
  protobuf,
  "text/plain",
  "application/x-www-form-urlencoded",
  "nonsense",
  "",
];

export const patchTypes = [
  "application/merge-patch+json",
  "application/strategic-merge-patch+json",
  "application/json-patch+json",
  "application/apply-patch+yaml",
  "application/json",
  "nonsense",
];

export const patchBodies = [
  '{"data":{"patched":"yes"}}',
  '[{"op":"add","path":"/data/added","value":"1"}]',
  '[{"op":"test","path":"/data/none","value":"1"}]',
  '{"apiVersion":"v1","kind":"ConfigMap","data":{"applied":"yes"}}',
  '{"metadata":{"labels":{"group":"patched"}}}',
  '{"data":',
  "null",
  "",
  "\u0000\u0001",
];

/**
 * Body sizes in bytes. The apiserver accepts 3 MiB and etcd half of that; the sizes lie just below and above both
 * limits.
 */
export const sizes = [
  0, 1, 100, 16_383, 16_385, 65_535, 200_000, 900_000, 1_048_000, 2_000_000, 3_145_728, 3_145_729,
];
