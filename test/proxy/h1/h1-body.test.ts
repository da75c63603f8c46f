import { suite } from "uvu";
import * as assert from "uvu/assert";
import { bodyEnd } from "../../../src/proxy/h1/h1-body.ts";
import type { Framing } from "../../../src/proxy/h1/h1-head.ts";

const test = suite("proxy/h1/h1-body");

/** How many bytes belong to the body, fed in pieces of `size`; or what is wrong. */
function taken(framing: Framing, text: string, size: number): number | string {
  const body = bodyEnd(framing);
  let count = 0;
  for (let at = 0; at < text.length; at += size) {
    const more = body.take(Buffer.from(text.slice(at, at + size), "latin1"));
    if (typeof more === "string") return more;
    count += more;
  }
  return body.isWhole === false ? "not whole" : count;
}

function everyWay(framing: Framing, text: string): number | string {
  const results = new Set(Array.from({ length: text.length }, (_, at) => taken(framing, text, at + 1)));
  assert.is(results.size, 1, `the same however it is cut: ${[...results].join(" or ")}`);
  return [...results][0] ?? "";
}

test("a length is counted, and what is behind it does not belong to it", () => {
  assert.is(everyWay(5, "12345HTTP/1.1"), 5);
  assert.is(everyWay(5, "1234"), "not whole");
  assert.is(bodyEnd(0).isWhole, true);
});

test("until the connection ends, everything belongs to the body", () => {
  assert.is(everyWay("close", "12345"), 5);
  assert.is(bodyEnd("close").isWhole, undefined);
});

test("chunks end with the empty line behind the last one and its trailers", () => {
  for (const body of [
    "0\r\n\r\n",
    "5\r\n0\r\n\r\n\r\n0\r\n\r\n",
    "a;x=y\r\n0123456789\r\n000\r\nX-Sum: 1\r\nX-Sum: 2\r\n\r\n",
  ])
    assert.is(everyWay("chunked", `${body}HTTP/1.1`), body.length);
  assert.is(everyWay("chunked", "5\r\n1234"), "not whole");
});

test("chunks that are none are refused, however they are cut", () => {
  for (const body of [
    "\r\n",
    "g\r\n",
    "-1\r\n",
    "123456789\r\n",
    " 1\r\n",
    "1\n2\r\n",
    "1;a\nb\r\n",
    "1\r\nab\r\n",
    "1\r\na0\r\n\r\n",
    "0\r\n X: folded\r\n\r\n",
    "0\r\nX : y\r\n\r\n",
    "0\r\nX: y\n\r\n",
  ])
    assert.is(everyWay("chunked", body), "malformed_chunks", JSON.stringify(body));
});

test("neither a line nor all trailers together may grow without end", () => {
  assert.match(String(taken("chunked", `1;${"a".repeat(9000)}`, 100)), "chunk_line_too_long");
  assert.type(taken("chunked", `0\r\n${"a: b\r\n".repeat(30_000)}\r\n`, 5000), "string");
  assert.type(taken("chunked", `0\r\n${"a: b\r\n".repeat(10_000)}\r\n`, 5000), "number");
});

test.run();
