import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../../src/h2/core/field.ts";
import { readRequest } from "../../../src/h2/core/fields.ts";
import { type AnswerHead, readAnswer, writeLastAnswer, writeUpgrade } from "../../../src/proxy/h1/h1-head.ts";
import { linesOf } from "../../support/h1.ts";

const test = suite("proxy/h1/h1-head");

const read = (text: string): AnswerHead | string | undefined => readAnswer(Buffer.from(text, "latin1"));

function whole(text: string): AnswerHead {
  const head = read(text);
  if (head === undefined || typeof head === "string") throw new Error(`Not a head: ${String(head)}`);
  return head;
}

test("a request that asks for an upgrade is written field by field, as it came", () => {
  const request = readRequest([
    new Field(":method", "POST"),
    new Field(":scheme", "https"),
    new Field(":authority", "api:6443"),
    new Field(":path", "/exec?a=%20"),
    new Field("x-a", "1"),
    new Field("x-a", "\xe4"),
  ]);
  if (typeof request === "string") throw new Error(request);
  assert.is(
    writeUpgrade(request, ["SPDY/3.1"]).toString("latin1"),
    "POST /exec?a=%20 HTTP/1.1\r\nhost: api:6443\r\nx-a: 1\r\nx-a: \xe4\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\n\r\n",
  );
});

test("a head is whole at its empty line, and not one byte before", () => {
  const text = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade:\tWebSocket \r\n\r\n";
  for (let end = 0; end < text.length; end += 1) assert.is(read(text.slice(0, end)), undefined);
  const head = whole(`${text}behind`);
  assert.equal([head.status, head.upgrades, head.framing, head.length], [101, ["websocket"], 0, text.length]);
});

test("what comes behind a head does not count against its bound", () => {
  assert.is(
    whole(`HTTP/1.1 403 No\r\nContent-Length: 200000\r\n\r\n${"x".repeat(200_000)}`).framing,
    200_000,
  );
});

test("fields keep their order and number; hop-by-hop fields are dropped", () => {
  const head = whole(
    "HTTP/1.1 200\r\nX-A: 1\r\nKeep-Alive: 5\r\nX-B:\r\nx-a: \xe4 2\t\r\nConnection: close\r\n\r\n",
  );
  assert.equal(linesOf(head.fields), [":status 200", "x-a 1", "x-b ", "x-a \xe4 2"]);
});

test("a body has its stated length, ends with its last chunk, or with the connection", () => {
  const framing = (fields: string, status = "403 No"): unknown =>
    whole(`HTTP/1.1 ${status}\r\n${fields}\r\n`).framing;
  assert.is(framing("Content-Length: 12\r\n"), 12);
  assert.is(framing("Transfer-Encoding: Chunked\r\n"), "chunked");
  assert.is(framing(""), "close");
  assert.is(framing("Content-Length: 12\r\n", "304 Not Modified"), 0);
  assert.is(framing("", "204 No Content"), 0);
  assert.is(framing("", "100 Continue"), 0);
});

test("what two parsers may read in two ways is refused", () => {
  for (const text of [
    "HTTP/1.1 200 OK\nX: y\r\n\r\n",
    "HTTP/1.1  200 OK\r\n\r\n",
    "HTTP/1.1 20 OK\r\n\r\n",
    "HTTP/1.1 600 OK\r\n\r\n",
    "HTTP/2 200 OK\r\n\r\n",
    "HTTP/1.1 200 O\0K\r\n\r\n",
    "HTTP/1.1 200 OK\r\nX\r\n\r\n",
    "HTTP/1.1 200 OK\r\n: y\r\n\r\n",
    "HTTP/1.1 200 OK\r\nX : y\r\n\r\n",
    "HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n",
    "HTTP/1.1 200 OK\r\nX: y\nZ: z\r\n\r\n",
    "HTTP/1.1 200 OK\r\n:status: 200\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/1.1 101 S\r\nContent-Length: 1\r\n\r\n",
    `HTTP/1.1 200 OK\r\nX: ${"y".repeat(140_000)}`,
    `HTTP/1.1 200 OK\r\n${"a:\r\n".repeat(16_385)}\r\n`,
  ])
    assert.type(read(text), "string", JSON.stringify(text.slice(0, 80)));
});

test("the last answer of a socket has Connection: close, in the framing and with the phrase that it came in", () => {
  const written = (text: string): string => writeLastAnswer(whole(text)).toString("latin1");
  assert.is(
    written("HTTP/1.1 403 No\r\nConnection: keep-alive\r\nContent-Length: 2\r\nX: y\r\n\r\n"),
    "HTTP/1.1 403 No\r\ncontent-length: 2\r\nx: y\r\nconnection: close\r\n\r\n",
  );
  assert.is(
    written("HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "HTTP/1.1 403 No\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n",
  );
});

test.run();
