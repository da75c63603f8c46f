/**
 * Step 2 of 7: what is asked for?
 *
 * Pure: method and target in, the apiserver's RequestInfo out, read by its own rules (k8s.io/apiserver,
 * requestinfo.go) from the very octets that it will read. Next: identify.
 */

import { detach } from "../base/detach.ts";
import { limits } from "../base/limits.ts";
import { isBuiltIn } from "./api-origin.ts";
import { flagIn, unescape } from "./query.ts";

/** What may be done for a request: plain ones are hedged, watches moved, long-running ones never touched (D6, D7). */
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
  /** As in the path: one given by a field selector is not looked for. */
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

/** The apiserver's list (controlplane/apiserver/config.go): a log is long-running even without `follow`. */
const longRunning = new Set(["attach", "exec", "proxy", "log", "portforward"]);

/** apis group version watch namespaces (namespace) resource name subresource: what comes after is not read. */
const partLimit = 9;

/** The caller has refused a target that does not begin with a slash (A30). */
export function classify(method: string, target: string): RequestInfo {
  const mark = target.indexOf("?");
  const path = unescape(mark < 0 ? target : target.slice(0, mark), "+");
  // A broken escape is answered with 400, whatever else the path says.
  if (path === undefined) return nonResource(method, "");
  // Names are remembered here and there: not with the whole of a long target each.
  const parts = target.length > limits.targetChars ? partsOf(path).map(detach) : partsOf(path);
  const versionAt = parts[0] === "apis" ? 2 : 1;
  const isResource = parts.length > versionAt + 1 && (parts[0] === "api" || parts[0] === "apis");
  if (!isResource) return nonResource(method, path);
  return resource(method, parts, versionAt, mark < 0 ? "" : target.slice(mark + 1));
}

/** Is one object of the apiserver's own, or a part of it, read by its name? */
export function isObjectRead(info: RequestInfo): boolean {
  return info.kind === "plain" && info.verb === "get" && info.isResource && isOwnResource(info);
}

/**
 * True if the apiserver answers from its own storage, so that its silence is its own. Not an aggregated API, which another
 * server answers; not a custom resource, whose conversion webhook may hang; not componentstatuses, for which it asks the
 * scheduler and the controller manager. Only of what is true here may the time to an answer be evidence on its health.
 */
export function isOwnApi(info: RequestInfo, target: string): boolean {
  if (info.isResource) return isOwnResource(info);
  // Discovery of a group, and its OpenAPI, are the server's that serves it.
  return !target.startsWith("/apis/") && !target.startsWith("/openapi/");
}

function isOwnResource(info: RequestInfo): boolean {
  return isBuiltIn(info.group) && info.resource !== "componentstatuses";
}

/** Slashes at the ends do not count, those between do: the version of `/api//pods` is "". */
function partsOf(path: string): string[] {
  let start = 0;
  let end = path.length;
  while (start < end && path.charCodeAt(start) === 0x2f) start++;
  while (end > start && path.charCodeAt(end - 1) === 0x2f) end--;
  return path.slice(start, end).split("/", partLimit);
}

function nonResource(method: string, path: string): RequestInfo {
  const verb = method.toLowerCase();
  // Methods of these names count as the verbs; but only a resource can be watched, so never `watch`.
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
  // `/api/v1/watch` alone: requestinfo.go gives up, and the answer is 500.
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

/** Behind `namespaces/<namespace>`, unless what follows is part of the namespace object itself. */
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
  // By the path's prefix anything may be called a watch; one that may carry a body is never sent twice.
  return method === "GET" || method === "HEAD" ? "watch" : "long-running";
}
