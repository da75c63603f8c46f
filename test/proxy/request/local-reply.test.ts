import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure, type FailureCode } from "../../../src/base/failure.ts";
import { errorCode, lost } from "../../../src/h2/core/protocol-error.ts";
import { honestCode, sendLocalReply, statusBody } from "../../../src/proxy/request/local-reply.ts";
import { Ear } from "../../support/path.ts";

const test = suite("proxy/request/local-reply");

function answered(
  code: FailureCode,
  method: string,
): { status: string; retryAfter: string | undefined; body: string } {
  const ear = new Ear();
  const side = {
    sendHeaders: ear.headers.bind(ear) as never,
    sendData: ear.data.bind(ear),
    queuedBytes: 0,
    reset() {},
    grant() {},
  };
  sendLocalReply(side, method, new Failure(code, "proxy", "Cannot choose a backend: 0 of 2 ready"));
  assert.ok(ear.isEnded);
  return {
    status: ear.status,
    retryAfter: ear.heads[0]?.find(({ name }) => name === "retry-after")?.value,
    body: ear.body,
  };
}

test("Retry-After goes only with what no backend has acted on: client-go repeats writes on it too (watch.md §10)", () => {
  for (const code of ["no-backend", "backend-refused", "overload", "draining"] as const) {
    assert.is(answered(code, "GET").retryAfter, "1", code);
    assert.is(answered(code, "POST").retryAfter, "1", code);
  }
  assert.is(answered("backend-lost", "POST").retryAfter, undefined);
});

test("the body is a Status that kubectl can print", () => {
  const { kind, status, code, message } = JSON.parse(answered("no-backend", "GET").body);
  assert.equal(
    [kind, status, code, message],
    ["Status", "Failure", 503, "watchkeeper: Cannot choose a backend: 0 of 2 ready"],
  );
});

test("HEAD has no body", () => {
  assert.is(answered("no-backend", "HEAD").body, "");
});

test("every failure has a reply", () => {
  for (const code of [
    "bad-request",
    "client-certificate",
    "backend-lost",
    "backend-protocol",
    "client-lost",
  ] as const) {
    assert.match(statusBody(new Failure(code, "client", "x"), false), '"kind":"Status"');
  }
});

test("a code that a client takes for an orderly end is never told (F9, nodejs/node 35209)", () => {
  for (const isAnswered of [true, false]) {
    for (const code of [lost, errorCode.NO_ERROR, errorCode.CANCEL])
      assert.is(honestCode(code, isAnswered), errorCode.INTERNAL_ERROR);
    assert.is(honestCode(errorCode.ENHANCE_YOUR_CALM, isAnswered), errorCode.ENHANCE_YOUR_CALM);
  }
});

test("REFUSED_STREAM says that nothing was processed, so it is not told once a head has gone", () => {
  assert.is(honestCode(errorCode.REFUSED_STREAM, false), errorCode.REFUSED_STREAM);
  assert.is(honestCode(errorCode.REFUSED_STREAM, true), errorCode.INTERNAL_ERROR);
});

test.run();
