import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { errorCode, ProtocolError } from "../../../src/h2/core/protocol-error.ts";
import type { Stream } from "../../../src/h2/session/stream.ts";
import { type Fields, headers } from "../../support/h2-frames.ts";
import { clientRig, Ear, fieldsOf, serverRig } from "../../support/h2-session.ts";

const test = suite("h2/session/message");

function asked(isHead = false): Stream {
  return clientRig().session.open(fieldsOf([[":method", isHead ? "HEAD" : "GET"]]), true, new Ear(), isHead);
}

const isMalformed = (error: unknown): boolean =>
  error instanceof ProtocolError && error.code === errorCode.PROTOCOL_ERROR && error.scope === "stream";

function answer(stream: Stream, status: number, end: boolean, ...more: Fields): void {
  stream.receiveAnswer(fieldsOf([[":status", String(status)], ...more]), end);
}

test("an interim head answers nothing, a final one does", () => {
  const stream = asked();
  answer(stream, 103, false);
  assert.not(stream.isAnswered);
  answer(stream, 404, true);
  assert.ok(stream.isAnswered);
});

test("sixteen interim heads pass, the seventeenth does not (A37)", () => {
  const stream = asked();
  for (let count = 0; count < limits.interimHeads; count++) answer(stream, 100, false);
  assert.throws(() => answer(stream, 100, false), isMalformed);
});

test("no status, a status of two digits, 101 and an interim end are malformed", () => {
  for (const run of [
    () => asked().receiveAnswer(fieldsOf([["a", "b"]]), false),
    () => answer(asked(), 20, false),
    () => answer(asked(), 101, false),
    () => answer(asked(), 103, true),
  ])
    assert.throws(run, isMalformed);
});

test("a body is held to its content-length (A29)", () => {
  const stream = asked();
  answer(stream, 200, false, ["content-length", "10"]);
  stream.countBody(6, false);
  stream.countBody(4, true);
  assert.throws(() => stream.countBody(1, false), isMalformed);
  const short = asked();
  answer(short, 200, false, ["content-length", "10"]);
  assert.throws(() => short.countBody(9, true), isMalformed);
});

test("a body without content-length may be of any length", () => {
  const stream = asked();
  answer(stream, 200, false);
  stream.countBody(1e12, false);
  stream.countBody(0, true);
});

test("an answer that ends with its head has no body to promise, but for HEAD and 304", () => {
  assert.throws(() => answer(asked(), 200, true, ["content-length", "1"]), isMalformed);
  answer(asked(), 200, true, ["content-length", "0"]);
  answer(asked(), 304, true, ["content-length", "1"]);
  const head = asked(true);
  answer(head, 200, true, ["content-length", "1"]);
});

test("an answer to HEAD, a 204 and a 304 have no body", () => {
  for (const status of [204, 304]) {
    const stream = asked();
    answer(stream, status, false);
    assert.throws(() => stream.countBody(1, false), isMalformed);
  }
});

test("trailers end their stream, and the body they end is as long as promised", () => {
  const stream = asked();
  answer(stream, 200, false, ["content-length", "2"]);
  assert.throws(() => stream.receiveTrailers(fieldsOf([["a", "b"]]), false), isMalformed);
  assert.throws(() => stream.receiveTrailers(fieldsOf([["a", "b"]]), true), isMalformed);
  stream.countBody(2, false);
  assert.throws(() => stream.receiveTrailers(fieldsOf([[":status", "200"]]), true), isMalformed);
  stream.receiveTrailers(fieldsOf([["a", "b"]]), true);
});

test("a head that is too long is answered whole, and its upload is stopped", () => {
  const rig = serverRig();
  rig.peer.sends(headers(1).post("/"));
  rig.last.stream.answerLongHead(false);
  rig.clock.turn();
  rig.peer.expects(
    "HEADERS 1 :status=431 content-type=application/json content-length=201",
    "DATA 1 201 bytes END",
    "RST_STREAM 1 NO_ERROR",
  );
});

test.run();
