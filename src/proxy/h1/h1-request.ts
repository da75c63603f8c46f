/**
 * Turns an HTTP/1.1 head into the fields of an HTTP/2 request, so that the same rules apply to both kinds of client.
 * Names become lower case; the values, the order and the number of fields stay. The input is Node's `rawHeaders`,
 * because its header objects merge repeated fields: two Impersonate-Group fields would become one group "a, b".
 */
import type { IncomingMessage } from "node:http";
import { limits } from "../../base/limits.ts";
import { Field } from "../../h2/core/field.ts";
import { type RequestHead, readRequest, trailersFault } from "../../h2/core/fields.ts";
import { classify } from "../../kube/request-info.ts";

export type H1Head = {
  readonly method: string;
  /** The target in the request line, in any form (RFC 9112 §3.2). */
  readonly target: string;
  readonly version: string;
  readonly rawHeaders: readonly string[];
  readonly scheme: "http" | "https";
  /** The address of the proxy to which the client connected. It replaces the missing Host of an HTTP/1.0 request. */
  readonly ownAuthority: string;
};

export function headOf(request: IncomingMessage, isTls: boolean): H1Head {
  const { localAddress = "", localPort = 0 } = request.socket;
  return {
    method: request.method ?? "",
    target: request.url ?? "",
    version: request.httpVersion,
    rawHeaders: request.rawHeaders,
    scheme: isTls ? "https" : "http",
    ownAuthority: `${localAddress.includes(":") ? `[${localAddress}]` : localAddress}:${localPort}`,
  };
}

export type H1Request = { readonly head: RequestHead; readonly hasBody: boolean };

/** Fields that are meant for the next hop only, whether or not `Connection` names them (RFC 9110 §7.6.1). */
const hopByHop = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
]);

/** Fields that `Connection` cannot remove, because they state the identity, the request or the body's end (A40). */
const kept =
  /^(authorization|cookie|host|content-.*|sec-websocket-.*|x[-_]remote[-_].*|x-forwarded-.*|impersonate[-_].*|audit-id)$/;

/** Checks a request by the rules of HTTP/1.1, then by those of HTTP/2. A string says why the request is refused. */
export function readHead(head: H1Head): H1Request | string {
  if (head.version !== "1.1" && head.version !== "1.0") return "HTTP version is neither 1.1 nor 1.0";
  const excess = excessOf(head.rawHeaders);
  if (excess !== undefined) return excess;
  const pairs = pairsOf(head.rawHeaders);
  const options = connectionOptions(pairs);
  const forbidden = [...options].find((option) => kept.test(option));
  if (forbidden !== undefined) return `Connection names "${forbidden}", which must reach the apiserver`;
  const framing = framingOf(pairs, head.version);
  if ("fault" in framing) return framing.fault;
  const target = targetOf(head, valuesOf(pairs, "host"));
  if (typeof target === "string") return target;
  const travelling = pairs.filter(([name, value]) => travelsOn(name, value, options));
  const request = readRequest(fieldsOf(head, target, travelling));
  return typeof request === "string"
    ? `Malformed request: ${request}`
    : { head: request, hasBody: framing.hasBody };
}

/** True for a watch or a long-running request. */
export function isEndless({ method, path }: RequestHead): boolean {
  return classify(method, path).kind !== "plain";
}

/** Returns which limit on the size of a head is exceeded, so that the answer is 431; undefined: none. */
export function excessOf(rawHeaders: readonly string[]): string | undefined {
  if (rawHeaders.length > 2 * limits.headerFields) return `More than ${limits.headerFields} header fields`;
  const isLong = rawHeaders.some((text) => text.length > limits.fieldBytes);
  return isLong ? `A field of more than ${limits.fieldBytes} bytes` : undefined;
}

export type H1Upgrade = { readonly head: RequestHead; readonly upgrades: readonly string[] };

/**
 * True if a request with an `Upgrade` field may switch protocols. If false, the field is ignored, as an apiserver does
 * where it serves no Upgrade: a proxy in front of this one may set the field on every request. A GET may switch on any
 * path, because an aggregated apiserver may serve an Upgrade there.
 */
export function mayUpgrade(raw: H1Head): boolean {
  if (upgradesOf(raw.rawHeaders).length === 0) return false;
  if (tunnels.has(classify(raw.method, raw.target).subresource)) return true;
  if (raw.version !== "1.1" || (raw.method !== "GET" && raw.method !== "POST")) return false;
  const framing = framingOf(pairsOf(raw.rawHeaders), raw.version);
  return "hasBody" in framing && !framing.hasBody;
}

/** Subresources that an apiserver serves by an Upgrade only. */
const tunnels = new Set(["exec", "attach", "portforward"]);

/**
 * Checks a request that may switch protocols. A body is refused: this proxy would treat the bytes after the head as
 * tunnel data, but another proxy might treat them as a second request (A34, CVE-2026-58055). `Content-Length: 0` is
 * allowed, because Go sends it with kubectl's POST.
 */
export function readUpgrade(raw: H1Head): H1Upgrade | string {
  const request = readHead(raw);
  if (typeof request === "string") return request;
  if (request.hasBody) return "Upgrade with a body";
  if (raw.version !== "1.1") return "Upgrade in HTTP/1.0";
  if (raw.method !== "GET" && raw.method !== "POST") return "Upgrade is for GET and POST";
  return { head: request.head, upgrades: upgradesOf(raw.rawHeaders) };
}

/**
 * Returns the trailers' fields, or a string that says why the trailers are refused. Trailers may describe the body.
 * They must not state the client's identity or where the message ends (A38, RFC 9110 §6.5.1).
 */
export function readTrailers(rawTrailers: readonly string[]): Field[] | string {
  if (rawTrailers.length > 2 * limits.headerFields) return `More than ${limits.headerFields} trailers`;
  const fields = pairsOf(rawTrailers).map(([name, value]) => new Field(name, value));
  const fault = trailersFault(fields);
  return fault === undefined ? fields : `Malformed trailers: ${fault}`;
}

/** Returns the protocols in `Upgrade` as written. Ignores h2c, which RFC 9113 §3.1 permits a server to ignore. */
function upgradesOf(rawHeaders: readonly string[]): string[] {
  return tokensOf(valuesOf(pairsOf(rawHeaders), "upgrade")).filter((name) => name.toLowerCase() !== "h2c");
}

/** Returns pairs of a name in lower case and its value, in order. */
function pairsOf(rawHeaders: readonly string[]): (readonly [string, string])[] {
  const pairs: (readonly [string, string])[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2)
    pairs.push([(rawHeaders[at] ?? "").toLowerCase(), rawHeaders[at + 1] ?? ""]);
  return pairs;
}

function fieldsOf(head: H1Head, target: Target, pairs: Pairs): Field[] {
  return [
    new Field(":method", head.method),
    new Field(":scheme", head.scheme),
    new Field(":authority", target.authority),
    new Field(":path", target.path),
    ...pairs.map(([name, value]) => new Field(name, name === "te" ? "trailers" : value)),
  ];
}

type Pairs = readonly (readonly [string, string])[];

function valuesOf(pairs: Pairs, wanted: string): string[] {
  return pairs.filter(([name]) => name === wanted).map(([, value]) => value);
}

function tokensOf(values: readonly string[]): string[] {
  return values
    .join(",")
    .split(",")
    .map((token) => token.trim())
    .filter((token) => token !== "");
}

function connectionOptions(pairs: Pairs): Set<string> {
  return new Set(tokensOf(valuesOf(pairs, "connection")).map((option) => option.toLowerCase()));
}

function travelsOn(name: string, value: string, options: ReadonlySet<string>): boolean {
  // `trailers` is the only option of TE that HTTP/2 allows (RFC 9113 §8.2.2).
  if (name === "te") return value.toLowerCase() === "trailers";
  return name !== "host" && !hopByHop.has(name) && !options.has(name);
}

/** Accepts only `chunked` or a single length, because any other framing enables request smuggling (A33). */
function framingOf(
  pairs: Pairs,
  version: string,
): { readonly hasBody: boolean } | { readonly fault: string } {
  const codings = valuesOf(pairs, "transfer-encoding");
  const lengths = valuesOf(pairs, "content-length");
  if (codings.length === 0) return { hasBody: lengths.some((length) => !/^0+$/.test(length)) };
  if (codings.length > 1 || codings[0]?.toLowerCase() !== "chunked")
    return { fault: 'Transfer-Encoding is not just "chunked"' };
  if (version === "1.0") return { fault: "Transfer-Encoding in HTTP/1.0" };
  return lengths.length > 0 ? { fault: "Both Content-Length and Transfer-Encoding" } : { hasBody: true };
}

type Target = { readonly authority: string; readonly path: string };

/** Returns a request's authority and path. Never decodes or normalises the path (A30). */
function targetOf(head: H1Head, hosts: readonly string[]): Target | string {
  if (hosts.length > 1) return "More than one Host";
  if (hosts.length === 0 && head.version === "1.1") return "No Host";
  const host = hosts[0] ?? head.ownAuthority;
  const absolute = /^https?:\/\/([^/?#]*)(.*)$/i.exec(head.target);
  if (absolute === null) return { authority: host, path: head.target };
  const authority = String(absolute[1]);
  const rest = String(absolute[2]);
  if (hosts.length > 0 && host.toLowerCase() !== authority.toLowerCase())
    return "Host differs from the request target's authority";
  return { authority, path: rest.startsWith("/") ? rest : `/${rest}` };
}
