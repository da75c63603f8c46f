import { suite } from "uvu";
import * as assert from "uvu/assert";
import { errorCode, lost } from "../../../src/h2/core/protocol-error.ts";
import { honestCode } from "../../../src/proxy/request/lost-attempt.ts";

const test = suite("proxy/request/lost-attempt");

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
