/**
 * What must be equal about two responses to the same request, and the closed list of differences that are allowed.
 *
 * Allowed differences, each with its reason:
 * - `date` depends on the clock, and `audit-id` identifies one request. Each must occur equally often on both sides.
 * - The names of the two namespaces (of equal length), uids, resource versions, times, ages, generated names and
 *   continue tokens differ, because the two requests are separate requests.
 * - Over HTTP/1.1 only, because the proxy uses HTTP/2 upstream: the order of fields with different names. Also
 *   `connection`, `keep-alive` and `transfer-encoding`, which belong to one hop (RFC 9110 §7.6.1). And content-length:
 *   Go's HTTP/2 server sets it for bodies up to 4 KiB, its HTTP/1.1 server only up to 2 KiB, so one side may be
 *   chunked. A content-length that is present must be correct.
 * - A 304 over HTTP/1.1: Go's HTTP/1.1 server removes its content-type; Go's HTTP/2 server does not.
 * - In the request that the echo pod receives: `x-forwarded-for`, to which the proxy adds an address as every apiserver
 *   does; `audit-id`, which the proxy adds to a request without one; and a repeated `cookie`, which HTTP/2 servers join
 *   (RFC 9113 §8.2.3) and HTTP/1.1 servers do not.
 *
 * Requests that the proxy rejects itself, or answers with a text of its own, are not drawn at random. They are listed
 * and tested as `refusals` in cases.ts.
 */
import { gunzipSync } from "node:zlib";
import type { Field, Reply } from "./send.ts";

/** The namespaces of the two sides. Their names are equally long, so that no content-length differs because of them. */
export const namespaces = { direct: "diff-d", proxied: "diff-p" } as const;

const ownValue = new Set(["date", "audit-id"]);
const oneHop = new Set(["connection", "keep-alive", "transfer-encoding"]);

const textRules: readonly [RegExp, string][] = [
  [/diff-[dp]/g, "diff-x"],
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "UID"],
  [/("?resourceVersion"?: ?"?)\d+/gi, "$1VERSION"],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "TIME"],
  [/("?continue"?: ?"?)[\w-]{20,}/g, "$1TOKEN"],
  [/"\d+[smh](\d+s)?"/g, '"AGE"'],
  [/(generated-)[a-z0-9]{5}\b/g, "$1xxxxx"],
  [/"Cookie","a=1","Cookie","b=2"/g, '"Cookie","a=1; b=2"'],
  [/"(x-forwarded-for|audit-id)",(\n\s*)?"[^"]*",?/gi, ""],
];

/**
 * The lengths of the enclosing messages are not replaced, because a uid, a time and (within a run) a version have the
 * same length on both sides.
 */
const protobufRules: readonly [RegExp, string][] = [
  ...textRules.slice(0, 2),
  [/\x32[\x01-\x09]\d+/g, "VERSION"], // ObjectMeta field 6
  [/\x12[\x02-\x09]\d{3,9}/g, "VERSION"], // ListMeta field 2
  [/\x08[\x80-\xff]{4}[\x00-\x7f]\x10\x00/g, "TIME"], // Time{seconds, nanos: 0}
  [/(generated-)[a-z0-9]{5}/g, "$1xxxxx"],
];

function valueOf(reply: Reply, name: string): string | undefined {
  return reply.fields.find(([other]) => other === name)?.[1];
}

/**
 * Returns the body with placeholders for the values that may differ. A gzip body is decompressed first, because such a
 * value changes all the bytes after it.
 */
function bodyOf(reply: Reply): string {
  const packed = valueOf(reply, "content-encoding") === "gzip" && reply.ended === "whole";
  const body = packed && reply.body.length > 0 ? gunzipSync(reply.body) : reply.body;
  const isProtobuf = valueOf(reply, "content-type")?.includes("protobuf") === true;
  let text = body.toString(isProtobuf ? "latin1" : "utf8");
  for (const [pattern, word] of isProtobuf ? protobufRules : textRules) text = text.replace(pattern, word);
  return text;
}

const truth = "that of the body";

/** content-length may differ between the sides if the body may differ, but it must be the length of its own body. */
function lengthOf(reply: Reply, method: string, value: string): string {
  if (method === "HEAD" || reply.status === 304) return "of a body unsent";
  return Number(value) === reply.body.length ? truth : `${value}, but ${reply.body.length} bytes came`;
}

function isFreeOverH1(reply: Reply, name: string): boolean {
  return oneHop.has(name) || (name === "content-type" && reply.status === 304);
}

function plain(value: string): string {
  let text = value;
  for (const [pattern, word] of textRules) text = text.replace(pattern, word);
  return text;
}

function fieldsOf(reply: Reply, method: string, isH1: boolean): string[] {
  const lines = reply.fields
    .filter(([name]) => !(isH1 && isFreeOverH1(reply, name)))
    .map(([name, value]) => {
      if (ownValue.has(name)) return `${name}: …`;
      return `${name}: ${name === "content-length" ? lengthOf(reply, method, value) : plain(value)}`;
    })
    .filter((line) => !(isH1 && line === `content-length: ${truth}`));
  // The sort is stable and compares only names, so the order of a repeated field's values is still compared.
  const name = (line: string): string => line.slice(0, line.indexOf(":"));
  return isH1 ? lines.toSorted((a, b) => (name(a) < name(b) ? -1 : Number(name(a) > name(b)))) : lines;
}

function trailersOf(trailers: readonly Field[]): string[] {
  return trailers.map(([name, value]) => `${name}: ${plain(value)}`);
}

/** Returns the first position at which two long texts differ, with the text around it. */
function parting(direct: string, proxied: string): string {
  let at = 0;
  while (at < direct.length && direct[at] === proxied[at]) at++;
  const around = (text: string): string => JSON.stringify(text.slice(Math.max(0, at - 60), at + 140));
  return `at ${at}: direct ${around(direct)}, proxied ${around(proxied)}`;
}

/** Returns one line for each difference that is not allowed; no lines if the responses are equal. */
export function differences(
  asked: { readonly method: string; readonly protocol: string },
  direct: Reply,
  proxied: Reply,
): string[] {
  const found: string[] = [];
  const same = (what: string, one: unknown, other: unknown): void => {
    const [a, b] = [JSON.stringify(one), JSON.stringify(other)];
    if (a !== b) found.push(`${what}: direct ${a}, proxied ${b}`);
  };
  same("status", direct.status, proxied.status);
  same("1xx", direct.early, proxied.early);
  same("ended", direct.ended, proxied.ended);
  const isH1 = asked.protocol === "h1";
  same("fields", fieldsOf(direct, asked.method, isH1), fieldsOf(proxied, asked.method, isH1));
  same("trailers", trailersOf(direct.trailers), trailersOf(proxied.trailers));
  const [one, other] = [bodyOf(direct), bodyOf(proxied)];
  if (one !== other) found.push(`body ${parting(one, other)}`);
  return found;
}
