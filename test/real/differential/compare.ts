/**
 * What must be equal about two answers to the same request, and the closed list of what need not be.
 *
 * Allowed differences, each with its reason:
 * - `date`: the clock; `audit-id`: the apiserver's name for one request. Both must be there as often on both sides.
 * - Two namespaces of one length, uids, resource versions, times, ages, generated names and continue tokens stand for
 *   themselves: the two requests are two requests.
 * - Over HTTP/1.1 only, since the proxy speaks h2 upstream: the order between fields of different names; `connection`,
 *   `keep-alive` and `transfer-encoding`, which belong to one hop (RFC 9110 §7.6.1); and content-length, which Go's h2
 *   server knows up to 4 KiB of body and its h1 server up to 2, so one side may be chunked. What is there must be true.
 * - A 304 over HTTP/1.1: Go's h1 server takes its content-type away, its h2 server does not.
 * - What a pod saw of the request (the echo): `x-forwarded-for`, which the proxy adds to as every apiserver does, and
 *   `audit-id`, which the proxy gives a request that has none. And `cookie` sent twice, which h2 servers join (RFC 9113
 *   §8.2.3), HTTP/1.1 servers do not.
 * What the proxy refuses itself, or answers in its own words, is not drawn but listed, and tested, as `refusals` in
 * cases.ts.
 */
import { gunzipSync } from "node:zlib";
import type { Field, Reply } from "./send.ts";

/** The namespaces of the two sides; equal lengths, so that no content-length differs by them. */
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

/** Lengths stay as they are: a uid, a time and (within a run) a version are as long on both sides. */
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

/** The body with all that stands for itself replaced; gzip is looked through, since its bytes depend on all of them. */
function bodyOf(reply: Reply): string {
  const packed = valueOf(reply, "content-encoding") === "gzip" && reply.ended === "whole";
  const body = packed && reply.body.length > 0 ? gunzipSync(reply.body) : reply.body;
  const isProtobuf = valueOf(reply, "content-type")?.includes("protobuf") === true;
  let text = body.toString(isProtobuf ? "latin1" : "utf8");
  for (const [pattern, word] of isProtobuf ? protobufRules : textRules) text = text.replace(pattern, word);
  return text;
}

const truth = "that of the body";

/** content-length may differ where the body does by rule, but it must tell the truth about its own body. */
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
  // Sorting by name alone is stable: the order of a repeated field's values still counts.
  const name = (line: string): string => line.slice(0, line.indexOf(":"));
  return isH1 ? lines.toSorted((a, b) => (name(a) < name(b) ? -1 : Number(name(a) > name(b)))) : lines;
}

function trailersOf(trailers: readonly Field[]): string[] {
  return trailers.map(([name, value]) => `${name}: ${plain(value)}`);
}

/** Where two long texts part, with what stands around. */
function parting(direct: string, proxied: string): string {
  let at = 0;
  while (at < direct.length && direct[at] === proxied[at]) at++;
  const around = (text: string): string => JSON.stringify(text.slice(Math.max(0, at - 60), at + 140));
  return `at ${at}: direct ${around(direct)}, proxied ${around(proxied)}`;
}

/** One line for each difference that is not on the list; none if the answers are the same. */
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
