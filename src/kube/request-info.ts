/** Classifies a request as the apiserver does (k8s.io/apiserver, requestinfo.go). */

import { detach } from "../base/detach.ts";
import { limits } from "../base/limits.ts";
import { Lru } from "../base/lru.ts";
import { isBuiltIn } from "./api-origin.ts";
import { flagIn, unescape } from "./query.ts";

/**
 * How the proxy treats a request. Only a plain request is hedged, and only a watch moves to another backend (D6, D7).
 */
export type Kind = "plain" | "watch" | "long-running";

export type RequestInfo = {
  readonly kind: Kind;
  readonly isResource: boolean;
  /**
   * For a resource: get, list, watch, create, update, patch, delete, deletecollection or proxy; "": the method is
   * unknown. Without a resource: the HTTP method in lower case.
   */
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  readonly namespace: string;
  readonly resource: string;
  /** The object's name in the path, not in a field selector; "": none. */
  readonly name: string;
  readonly subresource: string;
};

const verbs = new Map([
  ["GET", "get"],
  ["HEAD", "get"],
  ["POST", "create"],
  ["PUT", "update"],
  ["PATCH", "patch"],
  ["DELETE", "delete"],
]);

/**
 * Subresources that are long-running according to controlplane/apiserver/config.go. A request for `log` counts even
 * without `follow`.
 */
const longRunning = new Set(["attach", "exec", "proxy", "log", "portforward"]);

const mostPairs = 10_000;

/** Maximum number of path parts: apis, group, version, watch, namespaces, namespace, resource, name, subresource. */
const partLimit = 9;

/** Classifies a request. `target` begins with a slash, because the caller rejects all others (A30). */
export function classify(method: string, target: string): RequestInfo {
  const mark = target.indexOf("?");
  const path = unescape(mark < 0 ? target : target.slice(0, mark), "+");
  // The apiserver answers 400 to any path with an invalid escape.
  if (path === undefined) return nonResource(method, "");
  // The parts of a long target are copied, because a substring would keep the whole target in memory.
  const parts = target.length > limits.targetChars ? partsOf(path).map(detach) : partsOf(path);
  const versionAt = parts[0] === "apis" ? 2 : 1;
  const isResource = parts.length > versionAt + 1 && (parts[0] === "api" || parts[0] === "apis");
  if (!isResource) return nonResource(method, path);
  return resource(method, parts, versionAt, mark < 0 ? "" : target.slice(mark + 1));
}

const infoByPath = new Lru<string, RequestInfo>(limits.watchPaths);

/**
 * Returns one object for all watches of a path, because each of 50,000 watches keeps its classification. Watches of one
 * path have the same classification, whatever their queries. A request that is no watch keeps its own object, because it
 * ends soon.
 */
export function sharedInfo(info: RequestInfo, target: string): RequestInfo {
  if (info.kind !== "watch") return info;
  const mark = target.indexOf("?");
  const path = mark < 0 ? target : target.slice(0, mark);
  const known = infoByPath.get(path);
  if (known !== undefined) return known;
  const own = withoutTarget(info);
  infoByPath.set(detach(path), own);
  return own;
}

/** Returns a copy whose strings do not keep the target in memory: its query may contain a token (A55). */
function withoutTarget(info: RequestInfo): RequestInfo {
  return {
    ...info,
    group: detach(info.group),
    version: detach(info.version),
    namespace: detach(info.namespace),
    resource: detach(info.resource),
    name: detach(info.name),
    subresource: detach(info.subresource),
  };
}

/** True for a GET of a container's log: long-running, but without side effects. */
export function isLogRead(info: RequestInfo): boolean {
  return info.verb === "get" && info.group === "" && info.resource === "pods" && info.subresource === "log";
}

/** True for a GET of one object of a built-in API, or of such an object's subresource. */
export function isObjectRead(info: RequestInfo): boolean {
  return info.kind === "plain" && info.verb === "get" && info.isResource && isOwnResource(info);
}

/**
 * True if the apiserver answers from its own storage, so that a missing answer is evidence against the apiserver. False
 * for an aggregated API (another server answers), a custom resource (its webhook may hang) and componentstatuses (the
 * status of other components).
 */
export function isOwnApi(info: RequestInfo, target: string): boolean {
  if (info.isResource) return isOwnResource(info);
  // The documents of an API group (discovery, OpenAPI) come from the group's own server, perhaps an aggregated one.
  return !target.startsWith("/apis/") && !target.startsWith("/openapi/");
}

/** True for a resource that the apiserver itself stores, and whose API needs no CustomResourceDefinition. */
export function isOwnResource(info: Pick<RequestInfo, "group" | "resource">): boolean {
  return isBuiltIn(info.group) && info.resource !== "componentstatuses";
}

/** Returns the parts of a path without leading and trailing slashes. `/api//pods` has an empty second part. */
function partsOf(path: string): string[] {
  let start = 0;
  let end = path.length;
  while (start < end && path.charCodeAt(start) === 0x2f) start++;
  while (end > start && path.charCodeAt(end - 1) === 0x2f) end--;
  return path.slice(start, end).split("/", partLimit);
}

function nonResource(method: string, path: string): RequestInfo {
  const verb = method.toLowerCase();
  // Without a resource, the verb is the method. A method `WATCH` is no watch, because only resources have watches.
  const isLong = verb === "watch" || verb === "proxy" || path.startsWith("/debug/pprof/");
  const kind = isLong ? "long-running" : "plain";
  return {
    kind,
    isResource: false,
    verb,
    group: "",
    version: "",
    namespace: "",
    resource: "",
    name: "",
    subresource: "",
  };
}

function resource(method: string, parts: readonly string[], versionAt: number, query: string): RequestInfo {
  const prefix = prefixOf(part(parts, versionAt + 1));
  const first = prefix === "" ? versionAt + 1 : versionAt + 2;
  // For `/api/v1/watch` alone, requestinfo.go returns an error, and the apiserver answers 500.
  if (first === parts.length) return nonResource(method, "");
  const at = resourceAt(parts, first);
  const name = part(parts, at + 1);
  const subresource = prefix === "proxy" ? "" : part(parts, at + 2);
  const verb = prefix === "" ? verbOf(method, name, query) : prefix;
  return {
    kind: hasTooMany(query) ? "long-running" : kindOf(method, verb, subresource),
    isResource: true,
    verb,
    group: versionAt === 2 ? part(parts, 1) : "",
    version: part(parts, versionAt),
    namespace: part(parts, first) === "namespaces" ? part(parts, first + 1) : "",
    resource: part(parts, at),
    name,
    subresource,
  };
}

function part(parts: readonly string[], at: number): string {
  return parts[at] ?? "";
}

/** Returns the verb in a deprecated path, such as "watch" in `/api/v1/watch/pods`; "" if `word` is no such verb. */
function prefixOf(word: string): "" | "watch" | "proxy" {
  return word === "watch" || word === "proxy" ? word : "";
}

/**
 * Returns the index of the resource in the path. The resource follows `namespaces/<namespace>`; for a namespace itself
 * and its subresources, the resource is "namespaces".
 */
function resourceAt(parts: readonly string[], first: number): number {
  const next = parts[first + 2];
  const isInside =
    parts[first] === "namespaces" && next !== undefined && next !== "status" && next !== "finalize";
  return isInside ? first + 2 : first;
}

function verbOf(method: string, name: string, query: string): string {
  const verb = verbs.get(method) ?? "";
  if (name !== "") return verb;
  if (verb === "delete") return "deletecollection";
  if (verb !== "get") return verb;
  return flagIn(query, "watch") === true ? "watch" : "list";
}

/**
 * True if a query has more pairs than Go's net/url reads since 2026: such an apiserver ignores the whole query, and an
 * older one may see a watch in it. The proxy then neither hedges the request nor moves it.
 */
function hasTooMany(query: string): boolean {
  let count = 1;
  if (query.length < mostPairs) return false;
  for (let at = query.indexOf("&"); at >= 0; at = query.indexOf("&", at + 1)) count += 1;
  return count > mostPairs;
}

function kindOf(method: string, verb: string, subresource: string): Kind {
  if (verb === "proxy" || longRunning.has(subresource)) return "long-running";
  if (verb !== "watch") return "plain";
  // On a deprecated watch path, the apiserver treats every method as a watch. The proxy treats only methods without a
  // body as a watch here, because it may send a watch's request twice.
  return method === "GET" || method === "HEAD" ? "watch" : "long-running";
}
