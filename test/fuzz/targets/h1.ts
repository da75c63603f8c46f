/**
 * HTTP/1.1: responses of backends as bytes, requests as node:http's parser delivers them, and bodies cut at any place.
 */
import { bodyEnd } from "../../../src/proxy/h1/h1-body.ts";
import { readAnswer, writeLastAnswer } from "../../../src/proxy/h1/h1-head.ts";
import { readHead, readTrailers, readUpgrade } from "../../../src/proxy/h1/h1-request.ts";
import { piecesOf, same, type Target } from "../target.ts";

/** Returns how many bytes belong to the body, and the state of the body after them. */
function bodyOf(framing: Parameters<typeof bodyEnd>[0], pieces: readonly Buffer[]): string {
  const body = bodyEnd(framing);
  let taken = 0;
  for (const piece of pieces) {
    const count = body.take(piece);
    if (typeof count === "string") return count;
    taken += count;
    if (count < piece.length) break;
  }
  return `${taken} ${body.isWhole}`;
}

function answerFrom(input: Buffer, shape: number): void {
  const head = readAnswer(input);
  if (head === undefined || typeof head === "string") return;
  for (const cut of [1, head.length >> 1, head.length - 1])
    if (readAnswer(input.subarray(0, cut)) !== undefined)
      throw new Error(`a head that is not whole at ${cut}`);
  const rest = input.subarray(head.length);
  same(
    "a body whole and in pieces",
    bodyOf(head.framing, [rest]),
    bodyOf(head.framing, piecesOf(rest, shape)),
  );
  if (head.status === 101) return;
  const written = readAnswer(writeLastAnswer(head));
  if (written === undefined || typeof written === "string")
    throw new Error(`the message as written again is refused: ${written}`);
  same("read, written and read", [written.status, written.framing], [head.status, head.framing]);
}

/** Parses the input as a request: its first line, then lines of name and value. */
function requestFrom(input: Buffer): void {
  const [first = "", ...lines] = input.toString("latin1").split("\r\n");
  const [method = "", target = "", version = ""] = first.split(" ");
  const rawHeaders = lines.flatMap((line) => {
    const at = line.indexOf(":");
    return at < 0 ? [] : [line.slice(0, at), line.slice(at + 1).trim()];
  });
  const head = {
    method,
    target,
    version: version.slice("HTTP/".length),
    rawHeaders,
    scheme: "https",
    ownAuthority: "a",
  } as const;
  const read = readHead(head);
  readUpgrade(head);
  readTrailers(rawHeaders);
  if (typeof read === "string") return;
  const names = read.head.fields.map(({ name }) => name);
  const left = names.filter((name) =>
    /^(connection|keep-alive|proxy-connection|transfer-encoding|upgrade)$/.test(name),
  );
  if (left.length > 0) throw new Error(`goes on: ${left.join()}`);
  const lengths = rawHeaders.filter((name, at) => at % 2 === 0 && /^content-length$/i.test(name));
  const codings = rawHeaders.filter((name, at) => at % 2 === 0 && /^transfer-encoding$/i.test(name));
  if (lengths.length > 1 || (lengths.length > 0 && codings.length > 0))
    throw new Error("a body framed twice");
}

const lines = (...all: readonly string[]): string => all.join("\r\n");

export const h1: Target = {
  sources: ["proxy/h1/h1-head", "proxy/h1/h1-body", "proxy/h1/h1-request"],
  seeds: [
    lines("aHTTP/1.1 200 OK", "Content-Length: 5", "", "hello"),
    lines(
      "bHTTP/1.1 404 Not Found",
      "Transfer-Encoding: chunked",
      "",
      "5;x=y",
      "hello",
      "0",
      "X-Sum: 1",
      "",
      "next",
    ),
    lines("cHTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: SPDY/3.1", "", "x"),
    lines("dHTTP/1.1 204 No Content", "", ""),
    lines("eHTTP/1.1 500 ", "Connection: close", "", "to the end"),
    lines(
      "zPOST /exec HTTP/1.1",
      "Host: api",
      "Connection: Upgrade",
      "Upgrade: SPDY/3.1",
      "Content-Length: 0",
      "",
    ),
    lines(
      "yGET http://api/api HTTP/1.1",
      "Host: api",
      "Connection: close, x-a",
      "X-A: b",
      "TE: trailers",
      "",
    ),
    lines("xPUT / HTTP/1.0", "Transfer-Encoding: chunked", "Content-Length: 3", ""),
  ],
  words: [
    "HTTP/1.1 200 ",
    "\r\n",
    "\r\n\r\n",
    "\n",
    "Content-Length: ",
    "Transfer-Encoding: chunked\r\n",
    "Connection: ",
    "Upgrade: ",
    "chunked",
    "identity",
    "0\r\n\r\n",
    "ffffffff\r\n",
    ";a=b",
    ": ",
    " :",
    "\t",
    "X-Remote-User: x\r\n",
    "close",
    "keep-alive",
    "h2c",
    "GET / HTTP/1.1\r\n",
  ],
  run(input) {
    answerFrom(input.subarray(1), input[0] ?? 0);
    requestFrom(input.subarray(1));
  },
};
