/**
 * Header fields. A message that is accepted must contain nothing that a server behind the proxy could interpret
 * differently.
 */
import { Field } from "../../../src/h2/core/field.ts";
import { readRequest, readResponse, trailersFault } from "../../../src/h2/core/fields.ts";
import type { Target } from "../target.ts";

/**
 * The input encodes each field as name, 0xff, value, 0xfe. No rule of the code under test depends on these two bytes.
 */
function fieldsOf(input: Buffer): Field[] {
  return input
    .toString("latin1")
    .split("\xfe")
    .filter((part) => part.includes("\xff"))
    .map((part) => {
      const at = part.indexOf("\xff");
      return new Field(part.slice(0, at), part.slice(at + 1));
    });
}

function listOf(...pairs: readonly string[]): string {
  let text = "";
  for (let at = 0; at + 1 < pairs.length; at += 2) text += `${pairs[at]}\xff${pairs[at + 1]}\xfe`;
  return text;
}

const get = listOf(":method", "GET", ":scheme", "https", ":path", "/api", ":authority", "api:6443");
const hopByHop = /^(connection|keep-alive|proxy-connection|transfer-encoding|upgrade)$/;

/**
 * Returns the rule that the fields violate, if any. It shares no code with the code under test. `once` are the names
 * that may occur only once.
 */
function complaintOf(
  fields: readonly Field[],
  pseudo: readonly string[],
  once: readonly string[] = [],
): string | undefined {
  const seen = new Set<string>();
  let isPast = false;
  for (const { name, value } of fields) {
    if (!/^:?[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(name)) return `name ${name}`;
    if (/[\0-\x08\n-\x1f\x7f]|^[ \t]|[ \t]$/.test(value)) return `value of ${name}`;
    if (hopByHop.test(name)) return `hop-by-hop ${name}`;
    if (!name.startsWith(":")) isPast = true;
    else if (isPast || !pseudo.includes(name) || seen.has(name)) return `pseudo ${name}`;
    if (seen.has(name) && once.includes(name)) return `twice ${name}`;
    seen.add(name);
  }
  return undefined;
}

function fail(what: string, fields: readonly Field[]): never {
  throw new Error(`${what}: ${JSON.stringify(fields.map(({ name, value }) => [name, value]))}`);
}

export const fields: Target = {
  sources: ["h2/core/fields", "h2/core/field"],
  seeds: [
    get,
    listOf(
      ":method",
      "POST",
      ":scheme",
      "http",
      ":path",
      "/a?b=%2f",
      "host",
      "api",
      "content-length",
      "5",
      "te",
      "trailers",
    ),
    listOf(":status", "200", "content-type", "application/json", "content-length", "17"),
    listOf(":status", "204", "content-length", "0"),
    listOf("x-sum", "1", "grpc-status", "0"),
    `${get}${listOf("authorization", "Bearer x", "x-remote-user", "me", "impersonate-group", "a, b")}`,
    listOf(":method", "OPTIONS", ":scheme", "https", ":path", "*", ":authority", "[::1]:6443"),
  ],
  words: [
    ":method\xff",
    ":path\xff/",
    ":status\xff200",
    ":authority\xff",
    ":scheme\xffhttps\xfe",
    "host\xff",
    "content-length\xff",
    "te\xfftrailers",
    "connection\xff",
    "transfer-encoding\xff",
    "cookie\xff",
    "\xfe",
    "\xff",
    "\r\n",
    "x_remote_user\xff",
    "expect\xff",
    "[::1]",
    "%00",
    "#",
    "user@",
    "99999999999999999",
  ],
  run(input) {
    const list = fieldsOf(input);
    const request = readRequest(list);
    if (typeof request !== "string") {
      const complaint = complaintOf(
        list,
        [":method", ":scheme", ":path", ":authority"],
        ["content-length", "host", "te"],
      );
      if (complaint !== undefined) fail(`request with ${complaint}`, list);
      const isPath = request.path.startsWith("/") || (request.path === "*" && request.method === "OPTIONS");
      if (!isPath || /[\0-\x20#\x7f]/.test(request.path)) fail("path", list);
      if (/[\0-\x20@/?#\x7f]/.test(request.authority) || request.authority === "") fail("authority", list);
      if (/[\0-\x20\x7f]/.test(request.method) || request.method === "CONNECT") fail("method", list);
    }
    const response = readResponse(list);
    if (typeof response !== "string") {
      const complaint = complaintOf(list, [":status"], ["content-length"]);
      if (complaint !== undefined) fail(`answer with ${complaint}`, list);
      if (response.status < 100 || response.status > 599 || response.status === 101) fail("status", list);
    }
    if (trailersFault(list) === undefined) {
      const complaint = complaintOf(list, []);
      if (complaint !== undefined) fail(`trailers with ${complaint}`, list);
      const secret = /^((authorization|cookie)$|x[-_]remote[-_]|impersonate[-_]|(content-length|host)$)/;
      if (list.some(({ name }) => secret.test(name))) fail("trailers that say who asks", list);
    }
  },
};
