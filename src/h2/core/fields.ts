/**
 * Checks a head or trailers in one pass (RFC 9113 §8). A message that violates a rule is rejected. Fields are never
 * dropped or merged, because the backend would then get a request that differs from the client's (A10, A27-A32). There
 * is one exception: blanks around a regular field's value are removed, because clients send `Bearer ` with an empty
 * token, which kube-apiserver accepts. An error text names the violated rule, but no value. No regular expression here
 * can backtrack (A59).
 */
import { isIpAddress } from "../../base/address.ts";
import { type Field, type Role, role } from "./field.ts";

export type RequestHead = {
  readonly method: string;
  readonly scheme: string;
  readonly path: string;
  /** Value of `:authority`; without that field, the value of `host`. */
  readonly authority: string;
  /** Value of `content-length` in bytes; -1: absent. */
  readonly contentLength: number;
  readonly fields: readonly Field[];
};

export type ResponseHead = {
  readonly status: number;
  /** Value of `content-length` in bytes; -1: absent. */
  readonly contentLength: number;
  readonly fields: readonly Field[];
};

/** Returns the request's head, or a text that says which rule it violates. */
export function readRequest(fields: Field[]): RequestHead | string {
  const found = noneFound();
  const fault = scan(fields, requestRules, found) ?? requestFault(found);
  if (fault !== undefined) return fault;
  const contentLength = contentLengthOf(found);
  if (typeof contentLength === "string") return contentLength;
  return {
    method: found[role.method] ?? "",
    scheme: found[role.scheme] ?? "",
    path: found[role.path] ?? "",
    authority: found[role.authority] ?? found[role.host] ?? "",
    contentLength,
    fields,
  };
}

/**
 * Reads the requests of one session. Most requests of a client differ from the previous one only in `:path`. An HPACK
 * table returns the same Field objects for the other fields, so only the path has to be checked.
 */
export class RequestReader {
  #last: RequestHead | undefined;
  #pathAt = -1;

  /** Has the same result as `readRequest`. */
  read(fields: Field[]): RequestHead | string {
    const last = this.#last;
    const path = fields[this.#pathAt];
    if (last !== undefined && path !== undefined && isPlainPath(path) && this.#isAlike(fields, last.fields)) {
      const { method, scheme, authority, contentLength } = last;
      this.#last = { method, scheme, path: path.value, authority, contentLength, fields };
      return this.#last;
    }
    const head = readRequest(fields);
    const isKept = typeof head !== "string" && headBytes(fields) <= rememberedBytes;
    this.#last = isKept ? head : undefined;
    if (isKept) this.#pathAt = fields.findIndex((field) => field.role === role.path);
    return head;
  }

  /** True if all fields except the path are the same objects as in the previous head. */
  #isAlike(fields: readonly Field[], last: readonly Field[]): boolean {
    const { length } = fields;
    if (length !== last.length) return false;
    for (let at = 0; at < length; at += 1) if (fields[at] !== last[at] && at !== this.#pathAt) return false;
    return true;
  }
}

/**
 * Maximum size in bytes of a head that `RequestReader` remembers. A remembered head stays in memory while its session
 * is idle (A26).
 */
const rememberedBytes = 4096;

function isPlainPath(field: Field): boolean {
  if (field.role !== role.path || field.size > rememberedBytes) return false;
  return field.fault === undefined && pathForm.test(field.value);
}

/** Returns the size of a head in bytes, as HPACK counts it. */
export function headBytes(fields: readonly Field[]): number {
  let bytes = 0;
  for (const { size } of fields) bytes += size;
  return bytes;
}

/** Returns the response's head, which may be interim (1xx), or a text that says which rule it violates. */
export function readResponse(fields: Field[]): ResponseHead | string {
  const found = noneFound();
  const fault = scan(fields, responseRules, found);
  if (fault !== undefined) return fault;
  const text = found[role.status];
  if (text === undefined) return "no :status";
  if (!isStatus(text)) return ":status is not a number from 100 to 599";
  // Rejects 101 (Switching Protocols), which exists only in HTTP/1.1 (RFC 9113 §8.6).
  if (text === "101") return ":status is 101";
  const status = Number(text);
  const contentLength = contentLengthOf(found);
  if (typeof contentLength === "string") return contentLength;
  // RFC 9110 §8.6 forbids content-length in a 1xx or 204. A 204 with length 0 is accepted: it has no content.
  if ((status < 200 && contentLength >= 0) || (status === 204 && contentLength > 0))
    return "content-length in a response without content";
  return { status, contentLength, fields };
}

export function trailersFault(fields: Field[]): string | undefined {
  return scan(fields, trailerRules, noneFound());
}

type FoundByRole = (string | undefined)[];

/**
 * The values found in the head that is being read. One array serves all heads, because a head is read synchronously.
 */
const foundByRole: FoundByRole = Object.values(role).map(() => undefined);

function noneFound(): FoundByRole {
  return foundByRole.fill(undefined);
}

type Rule = {
  readonly isPseudo: boolean;
  readonly isOnce: boolean;
  readonly fault: string | undefined;
};

const free: Rule = { isPseudo: false, isOnce: false, fault: undefined };
const single: Rule = { isPseudo: false, isOnce: true, fault: undefined };
const pseudo: Rule = { isPseudo: true, isOnce: true, fault: undefined };

function refused(fault: string): Rule {
  return { isPseudo: false, isOnce: false, fault };
}

const connectionSpecific = refused("connection-specific field");
const pseudoOfRequest = refused("pseudo-field of a request");
const pseudoOfResponse = refused("pseudo-field of a response");
const unknownPseudo = refused("unknown pseudo-field");
const pseudoInTrailers = refused("pseudo-field in trailers");
/**
 * The rule for fields that are forbidden in trailers. A receiver that merges trailers into the head would obey them
 * (A38).
 */
const headOnly = refused("field in trailers that belongs in the head");

/** Returns the rules, indexed by role. A role that is in no row gets the rule `free`. */
function rulesOf(...rows: readonly (readonly [Rule, ...Role[]])[]): readonly Rule[] {
  const rules = Object.values(role).map(() => free);
  for (const [rule, ...roles] of rows) for (const of of roles) rules[of] = rule;
  return rules;
}

const requestRules = rulesOf(
  [pseudo, role.method, role.scheme, role.path, role.authority],
  [pseudoOfResponse, role.status],
  [unknownPseudo, role.unknownPseudo],
  [connectionSpecific, role.connectionSpecific],
  [single, role.contentLength, role.host, role.te],
);

const responseRules = rulesOf(
  [pseudoOfRequest, role.method, role.scheme, role.path, role.authority],
  [pseudo, role.status],
  [unknownPseudo, role.unknownPseudo],
  [connectionSpecific, role.connectionSpecific, role.te],
  [single, role.contentLength],
);

const trailerRules = rulesOf(
  [pseudoInTrailers, role.method, role.scheme, role.path, role.authority, role.status, role.unknownPseudo],
  [connectionSpecific, role.connectionSpecific, role.te],
  [headOnly, role.contentLength, role.host, role.expect, role.authorization, role.credential, role.identity],
);

/**
 * Trims and checks each field. Stores the values of fields that may occur only once in `found`. Returns the first
 * violation; undefined: none.
 */
function scan(fields: Field[], rules: readonly Rule[], found: FoundByRole): string | undefined {
  let hasRegular = false;
  trim(fields);
  for (const field of fields) {
    const rule = rules[field.role] ?? free;
    const fault = field.fault ?? rule.fault;
    if (fault !== undefined) return fault;
    if (rule.isPseudo && hasRegular) return "pseudo-field after a regular field";
    hasRegular = !rule.isPseudo;
    if (!rule.isOnce) continue;
    if (found[field.role] !== undefined) return "repeated field that may occur only once";
    found[field.role] = field.value;
  }
  return undefined;
}

function trim(fields: Field[]): void {
  for (let at = 0; at < fields.length; at += 1) {
    const field = fields[at];
    if (field?.hasOuterBlanks && !field.name.startsWith(":")) fields[at] = field.trimmed();
  }
}

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/**
 * Matches an absolute path of visible characters except `#`, because a fragment is never sent (RFC 9112 §3.2). Bytes
 * above ASCII should be percent-encoded, but the apiserver accepts them, so the proxy does, too (A30).
 */
const pathForm = /^\/[!"$-~\x80-\xff]*$/;
/** Matches host [":" port] of RFC 3986 §3.2, without userinfo (RFC 9113 §8.3.1). */
const authorityForm = /^(?:\[[0-9A-Za-z:.%_~-]+\]|[0-9A-Za-z\-._~%!$&'()*+,;=]+)(?::[0-9]*)?$/;
const longestIpv6Chars = "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255:65535".length;
const statusForm = /^[1-5][0-9][0-9]$/;
/** Compares with 200 first, so that most responses need no regular expression. */
function isStatus(text: string): boolean {
  return text === "200" || statusForm.test(text);
}

const digits = /^[0-9]{1,16}$/;

function requestFault(found: FoundByRole): string | undefined {
  const te = found[role.te] ?? "trailers";
  if (te !== "trailers") return "te is not trailers";
  return methodFault(found) ?? targetFault(found) ?? authorityFault(found);
}

/**
 * Accepts any token except CONNECT. Methods are case-sensitive (RFC 9110 §9.1), so `get` is no standard method. It is
 * accepted nevertheless, because apiservers answer it.
 */
function methodFault(found: FoundByRole): string | undefined {
  const method = found[role.method];
  if (method === undefined) return "no :method";
  if (method !== "GET" && !token.test(method)) return ":method is not a token";
  return method === "CONNECT" ? "CONNECT is not served" : undefined;
}

function targetFault(found: FoundByRole): string | undefined {
  const scheme = found[role.scheme];
  const path = found[role.path];
  if (scheme === undefined) return "no :scheme";
  if (scheme !== "https" && scheme !== "http") return ":scheme is neither http nor https";
  if (path === undefined) return "no :path";
  if (pathForm.test(path) || (path === "*" && found[role.method] === "OPTIONS")) return undefined;
  return ":path is not an absolute path of visible characters";
}

/** Rejects different values of `:authority` and `host`, because they allow request smuggling (A31). */
function authorityFault(found: FoundByRole): string | undefined {
  const authority = found[role.authority];
  const host = found[role.host];
  const requested = authority ?? host;
  if (requested === undefined) return "neither :authority nor host";
  if (!authorityForm.test(requested) && !isBareIpv6(requested))
    return "authority is not a host with an optional port";
  if (host === undefined || host === requested) return undefined;
  return host.toLowerCase() === requested.toLowerCase() ? undefined : "host differs from :authority";
}

/** True for an IPv6 address without brackets. Node's HTTP/2 client sends this form, and apiservers accept it. */
function isBareIpv6(authority: string): boolean {
  if (authority.length > longestIpv6Chars) return false;
  return isIpAddress(authority) || isIpAddress(authority.replace(/:[0-9]+$/, ""));
}

function contentLengthOf(found: FoundByRole): number | string {
  const text = found[role.contentLength];
  if (text === undefined) return -1;
  const length = digits.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(length) ? length : "content-length is not a number of bytes";
}
