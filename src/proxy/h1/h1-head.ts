/**
 * HTTP/1.1 heads as bytes, for Upgrades to a backend (upgrade-handler.ts): writes the request's head and parses the
 * response's head. Refuses a head that two parsers could understand in different ways (A37).
 */

import { limits } from "../../base/limits.ts";
import { Field, role, withoutBlanks } from "../../h2/core/field.ts";
import { type RequestHead, type ResponseHead, readResponse } from "../../h2/core/fields.ts";

/** Where a body ends: after this many bytes, after its last chunk, or with its connection. */
export type Framing = number | "chunked" | "close";

export type AnswerHead = ResponseHead & {
  /** The reason phrase, which some clients show or compare. */
  readonly phrase: string;
  /** Protocols in the `Upgrade` field, in lower case. */
  readonly upgrades: readonly string[];
  readonly framing: Framing;
  /** Size of the head in bytes, including the empty line that ends it. */
  readonly length: number;
};

/** Returns the bytes of a head: the lines `before`, the fields in order, and the lines `after`. */
export function writeHead(
  before: readonly string[],
  fields: readonly Field[],
  after: readonly string[] = [],
): Buffer {
  const lines = fields
    .filter(({ name }) => !name.startsWith(":"))
    .map(({ name, value }) => `${name}: ${value}`);
  return Buffer.from([...before, ...lines, ...after, "", ""].join("\r\n"), "latin1");
}

/**
 * Returns the head of a bodiless request for an Upgrade to one of the protocols `upgrades`. `readRequest` must have
 * accepted the fields before.
 */
export function writeUpgrade(request: RequestHead, upgrades: readonly string[]): Buffer {
  return writeHead(
    [`${request.method} ${request.path} HTTP/1.1`, `host: ${request.authority}`],
    request.fields.filter((field) => field.role !== role.host),
    ["connection: Upgrade", `upgrade: ${upgrades.join(", ")}`],
  );
}

/** Returns the head of a response that does not switch protocols. The connection ends after this response. */
export function writeLastAnswer({ status, phrase, fields, framing }: AnswerHead): Buffer {
  const coding = framing === "chunked" ? ["transfer-encoding: chunked"] : [];
  return writeHead([`HTTP/1.1 ${status} ${phrase}`], fields, [...coding, "connection: close"]);
}

/**
 * Parses the head at the start of `bytes`. Returns undefined if the head is incomplete, and the reason as a string if
 * it is malformed.
 */
export function readAnswer(bytes: Buffer): AnswerHead | string | undefined {
  const end = bytes.indexOf("\r\n\r\n");
  if ((end < 0 ? bytes.length : end) > limits.headerListBytes) return "head is too large";
  if (end < 0) return undefined;
  const [first = "", ...lines] = bytes.toString("latin1", 0, end).split("\r\n");
  const line = statusLine.exec(first);
  if (line === null) return "status line is malformed";
  if (lines.length > limits.headerFields) return "too many fields";
  const fields = readFields(lines);
  if (typeof fields === "string") return fields;
  const [, status = "", phrase = ""] = line;
  return judge({ status, phrase }, fields, end + 4);
}

const statusLine = /^HTTP\/1\.1 ([1-5][0-9][0-9])(?: ([\t\x20-\x7e\x80-\xff]*))?$/;
/** Matches neither a folded line nor a line with a blank before the colon, so both are refused (RFC 9112 §5). */
const fieldLine = /^([^\s:]+):(.*)$/;

function readFields(lines: readonly string[]): Field[] | string {
  const fields: Field[] = [];
  for (const line of lines) {
    const parts = fieldLine.exec(line);
    if (parts === null) return "field line is malformed";
    const field = new Field(String(parts[1]).toLowerCase(), withoutBlanks(String(parts[2])));
    // The value may still contain a bare CR or LF. `fault` reports it like any other control character.
    if (field.fault !== undefined) return field.fault;
    fields.push(field);
  }
  return fields;
}

/**
 * Returns the response's head, or a string that says what is wrong. Interprets the connection-specific fields itself.
 * The other fields must form a valid HTTP/2 response.
 */
function judge(
  { status, phrase }: { readonly status: string; readonly phrase: string },
  fields: readonly Field[],
  length: number,
): AnswerHead | string {
  const isSwitch = status === "101";
  const kept = fields.filter((field) => field.role !== role.connectionSpecific && field.role !== role.te);
  // HTTP/2 has no status 101, so the head is checked as if its status were 103 (also an interim response).
  const head = readResponse([new Field(":status", isSwitch ? "103" : status), ...kept]);
  if (typeof head === "string") return head;
  const codings = valuesOf(fields, "transfer-encoding");
  const framing = framingOf(head, codings);
  if (framing === undefined) return "transfer-encoding is not allowed here";
  const upgrades = valuesOf(fields, "upgrade").flatMap((value) =>
    value.toLowerCase().split(",").map(withoutBlanks),
  );
  return { ...head, status: Number(status), phrase, upgrades, framing, length };
}

/**
 * Returns where the body of a response to GET or POST ends (RFC 9112 §6.3). Undefined if the fields contradict each
 * other, or state a body where none is allowed.
 */
function framingOf(head: ResponseHead, codings: readonly string[]): Framing | undefined {
  const isBodiless = head.status < 200 || head.status === 204 || head.status === 304;
  if (codings.length === 0) {
    if (isBodiless) return 0;
    return head.contentLength >= 0 ? head.contentLength : "close";
  }
  if (isBodiless || head.contentLength >= 0) return undefined;
  return codings.join().toLowerCase() === "chunked" ? "chunked" : undefined;
}

function valuesOf(fields: readonly Field[], name: string): string[] {
  return fields.filter((field) => field.name === name).map((field) => field.value);
}
