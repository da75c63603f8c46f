import { suite } from "uvu";
import * as assert from "uvu/assert";
import { failureFrom } from "../src/failure.ts";

const test = suite("failure");

test("a refused dial says that nothing was sent", () => {
  const reason = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:1"), { code: "ECONNREFUSED" });
  assert.is(failureFrom(reason, "backend").code, "backend-refused");
});

test("a reset is a loss whose outcome is unknown", () => {
  const reason = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
  assert.is(failureFrom(reason, "backend").code, "backend-lost");
});

test("whatever a client does is charged to the client", () => {
  const failure = failureFrom("gone", "client");
  assert.equal([failure.code, failure.origin, failure.message], ["client-lost", "client", "gone"]);
});

test("OpenSSL's errors are told in their own words, without addresses and file names", () => {
  const reason = Object.assign(new Error("40ED020B:error:0A000460:SSL routines:…ssl/record.c:918"), {
    library: "SSL routines",
    reason: "tlsv1 alert no application protocol",
  });
  assert.is(failureFrom(reason, "backend").message, "TLS: tlsv1 alert no application protocol");
});

test.run();
