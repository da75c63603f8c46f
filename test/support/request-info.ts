/**
 * A second implementation of the apiserver's RequestInfo, against which the fast one is compared. It follows
 * requestinfo.go and net/url line by line, and shares no code with the fast one.
 */
export type PlainInfo = {
  isResource: boolean;
  verb: string;
  group: string;
  version: string;
  namespace: string;
  resource: string;
  name: string;
  subresource: string;
  isLongRunning: boolean;
};

/**
 * Returns undefined if the apiserver refuses the request: for an invalid escape in the path, or for `/api/v1/watch`
 * without a resource.
 */
export function requestInfo(method: string, target: string): PlainInfo | undefined {
  const path = goUnescape(target.replace(/\?.*/s, ""), false);
  const query = target.replace(/^[^?]*\??/, "");
  if (path === undefined) return undefined;
  const parts = splitPath(path);
  const api = take(parts);
  if (!isResourcePath(api, parts))
    return judged({ ...empty, isResource: false, verb: method.toLowerCase() }, path);
  const group = api === "apis" ? take(parts) : "";
  const version = take(parts);
  const verb = ["proxy", "watch"].includes(parts[0] ?? "") ? take(parts) : verbByMethod(method);
  if (parts.length === 0) return undefined;
  return judged({ isResource: true, group, version, ...object(verb, parts, query) }, path);
}

const empty = { group: "", version: "", namespace: "", resource: "", name: "", subresource: "" };

function take(parts: string[]): string {
  return parts.shift() ?? "";
}

function isResourcePath(api: string, rest: readonly string[]): boolean {
  return (api === "api" && rest.length >= 2) || (api === "apis" && rest.length >= 3);
}

function verbByMethod(method: string): string {
  const verbs: Record<string, string> = { POST: "create", GET: "get", HEAD: "get", PUT: "update" };
  return { ...verbs, PATCH: "patch", DELETE: "delete" }[method] ?? "";
}

function isBelowNamespace(parts: readonly string[]): boolean {
  return parts[0] === "namespaces" && parts.length > 2 && !["status", "finalize"].includes(parts[2] ?? "");
}

type Named = Pick<PlainInfo, "verb" | "namespace" | "resource" | "name" | "subresource">;

function object(verb: string, parts: string[], query: string): Named {
  const namespace = parts[0] === "namespaces" ? (parts[1] ?? "") : "";
  const rest = isBelowNamespace(parts) ? parts.slice(2) : [...parts];
  const named = { verb, namespace, resource: take(rest), name: take(rest), subresource: "" };
  if (verb !== "proxy") named.subresource = take(rest);
  if (named.name !== "") return named;
  if (verb === "get") return { ...named, verb: isWatch(query) ? "watch" : "list" };
  return verb === "delete" ? { ...named, verb: "deletecollection" } : named;
}

function judged(info: Omit<PlainInfo, "isLongRunning">, path: string): PlainInfo {
  const isLongRunning =
    ["watch", "proxy"].includes(info.verb) ||
    (info.isResource && ["attach", "exec", "proxy", "log", "portforward"].includes(info.subresource)) ||
    (!info.isResource && path.startsWith("/debug/pprof/"));
  return { ...info, isLongRunning };
}

function splitPath(path: string): string[] {
  const trimmed = path.replace(/^\/+/, "").replace(/\/+$/, "");
  return trimmed === "" ? [] : trimmed.split("/");
}

function isWatch(query: string): boolean {
  const values = goParseQuery(query).get("watch");
  if (values === undefined) return false;
  const first = values[0] ?? "";
  // Go's EqualFold compares code points, and treats U+017F (long s) as equal to s.
  const folded = Buffer.from(first, "latin1").toString("utf8").replaceAll("\u017f", "s");
  return first !== "0" && !/^false$/i.test(folded);
}

export function goParseQuery(query: string): Map<string, string[]> {
  const values = new Map<string, string[]>();
  for (const pair of query.split("&")) {
    if (pair === "" || pair.includes(";")) continue;
    const [rawKey = "", ...rest] = pair.split("=");
    const key = goUnescape(rawKey, true);
    const value = goUnescape(rest.join("="), true);
    if (key === undefined || value === undefined) continue;
    values.set(key, [...(values.get(key) ?? []), value]);
  }
  return values;
}

function goUnescape(text: string, isQuery: boolean): string | undefined {
  if (/%(?![0-9a-fA-F]{2})/.test(text)) return undefined;
  const spaced = isQuery ? text.replaceAll("+", " ") : text;
  return spaced.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
