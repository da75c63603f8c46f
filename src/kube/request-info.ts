/**
 * Classifies a request: method and target in, the apiserver's RequestInfo out, by the apiserver's own rules
 * (k8s.io/apiserver, requestinfo.go) and from the same bytes.
 */

import { detach } from "../base/detach.ts";
import { limits } from "../base/limits.ts";
import { isBuiltIn } from "./api-origin.ts";
import { flagIn, unescape } from "./query.ts";

/** How a request may be treated: plain ones are hedged, watches moved, long-running ones left alone (D6, D7). */
export type Kind = "plain" | "watch" | "long-running";

export type RequestInfo = {
  readonly kind: Kind;
  readonly isResource: boolean;
  /** get list watch create update patch delete deletecollection proxy or ""; the lower-case method of non-resources. */
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  readonly namespace: string;
  readonly resource: string;
  /** From the path only: a name in a field selector is not considered. */
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

/** The apiserver's list (controlplane/apiserver/config.go): a log request is long-running even without `follow`. */
const longRunning = new Set(["attach", "exec", "proxy", "log", "portforward"]);

/** apis group version watch namespaces (namespace) resource name subresource: later parts are not needed. */
const partLimit = 9;

/** The caller has rejected a target that does not begin with a slash (A30). */
export function classify(method: string, target: string): RequestInfo {
  const mark = target.indexOf("?");
  const path = unescape(mark < 0 ? target : target.slice(0, mark), "+");
  // An invalid escape is answered with 400, whatever else the path contains.
  if (path === undefined) return nonResource(method, "");
  // Names are remembered elsewhere, so they must not keep a long target in memory.
  const parts = target.length > limits.targetChars ? partsOf(path).map(detach) : partsOf(path);
  const versionAt = parts[0] === "apis" ? 2 : 1;
  const isResource = parts.length > versionAt + 1 && (parts[0] === "api" || parts[0] === "apis");
  if (!isResource) return nonResource(method, path);
  return resource(method, parts, versionAt, mark < 0 ? "" : target.slice(mark + 1));
}

/** True if one object of a built-in API, or a subresource of it, is read by name. */
export function isObjectRead(info: RequestInfo): boolean {
  return info.kind === "plain" && info.verb === "get" && info.isResource && isOwnResource(info);
}

/**
 * True if the apiserver answers from its own storage, so that no answer means a fault of its own. False for an
 * aggregated API, which another server answers; for a custom resource, whose conversion webhook may hang; and for
 * componentstatuses, for which it queries the scheduler and the controller manager. Only requests for which this is
 * true may serve as evidence on its health.
 */
export function isOwnApi(info: RequestInfo, target: string): boolean {
  if (info.isResource) return isOwnResource(info);
  // Discovery of a group and its OpenAPI come from the server of that group.
  return !target.startsWith("/apis/") && !target.startsWith("/openapi/");
}

function isOwnResource(info: RequestInfo): boolean {
  return isBuiltIn(info.group) && info.resource !== "componentstatuses";
}

/** Leading and trailing slashes are ignored, others are not: the version of `/api//pods` is "". */
function partsOf(path: string): string[] {
  let start = 0;
  let end = path.length;
  while (start < end && path.charCodeAt(start) === 0x2f) start++;
  while (end > start && path.charCodeAt(end - 1) === 0x2f) end--;
  return path.slice(start, end).split("/", partLimit);
}

function nonResource(method: string, path: string): RequestInfo {
  const verb = method.toLowerCase();
  // Methods with these names count as verbs. Only a resource can be watched, so `watch` is excluded.
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
  // `/api/v1/watch` alone: requestinfo.go returns an error, and the response is 500.
  if (first === parts.length) return nonResource(method, "");
  const at = resourceAt(parts, first);
  const name = part(parts, at + 1);
  const subresource = prefix === "proxy" ? "" : part(parts, at + 2);
  const verb = prefix === "" ? verbOf(method, name, query) : prefix;
  return {
    kind: kindOf(method, verb, subresource),
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

/** Verbs that older clients put into the path, after the version. */
function prefixOf(word: string): "" | "watch" | "proxy" {
  return word === "watch" || word === "proxy" ? word : "";
}

/**
 * Returns where the resource is: after `namespaces/<namespace>`, unless the next part belongs to the namespace object
 * itself.
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

function kindOf(method: string, verb: string, subresource: string): Kind {
  if (verb === "proxy" || longRunning.has(subresource)) return "long-running";
  if (verb !== "watch") return "plain";
  // The path prefix can make any method a watch. A method that may have a body is never sent twice.
  return method === "GET" || method === "HEAD" ? "watch" : "long-running";
}
