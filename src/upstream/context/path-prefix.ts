/**
 * Lets backends serve the Kubernetes API below a path, as management servers for many clusters do:
 * `/k8s/clusters/c-1/api/v1/pods`. Inside the proxy, paths begin at that path, so that requests are classified, limited
 * and resumed as at any apiserver. The path is taken off when a request arrives, and put back when it is sent.
 */
import { Field, role } from "../../h2/core/field.ts";
import type { RequestHead } from "../../h2/core/fields.ts";
import { targetIn } from "./request-context.ts";

/** Returns the request as the apiserver below `prefix` sees it. A client may use its path, or the root. */
export function withoutPrefix(request: RequestHead, prefix: string): RequestHead {
  const { path } = request;
  const next = path.charAt(prefix.length);
  if (prefix === "" || !path.startsWith(prefix) || !["", "/", "?"].includes(next)) return request;
  const rest = path.slice(prefix.length);
  const below = next === "/" ? rest : `/${rest}`;
  return { ...request, path: below, fields: withPath(request.fields, below) };
}

/** Returns the fields of a request to a backend that serves the API below `prefix`. */
export function withPrefix(fields: readonly Field[], prefix: string): readonly Field[] {
  return prefix === "" ? fields : withPath(fields, prefix + targetIn(fields));
}

export function withPath(fields: readonly Field[], path: string): readonly Field[] {
  return fields.map((field) => (field.role === role.path ? new Field(":path", path) : field));
}
