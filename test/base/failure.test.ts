import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  cannotListen,
  Failure,
  failureFrom,
  isPortTaken,
  isShortage,
  metOf,
  timeout,
  wordsOf,
} from "../../src/base/failure.ts";

const test = suite("failure");

test("a refused dial says that nothing was sent", () => {
  const reason = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:1"), { code: "ECONNREFUSED" });
  assert.is(failureFrom(reason, "backend").code, "backend-refused");
});

test("a reset is a loss whose outcome is unknown", () => {
  const reason = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
  assert.is(failureFrom(reason, "backend").code, "backend-lost");
});

test("a port that cannot be had is told with its listener, its address and a plain word", () => {
  const told = (code: string): string =>
    cannotListen("kube", "[::]:8443", Object.assign(new Error(`listen ${code}: what Node says`), { code }))
      .message;
  assert.is(told("EADDRINUSE"), "listener kube: cannot listen on [::]:8443: already in use");
  assert.is(told("EACCES"), "listener kube: cannot listen on [::]:8443: permission denied");
  assert.is(
    told("EADDRNOTAVAIL"),
    "listener kube: cannot listen on [::]:8443: not an address of this machine",
  );
  assert.is(told("EMFILE"), "listener kube: cannot listen on [::]:8443: listen EMFILE: what Node says");
});

test("a caller that may take another port asks whether this one is in use by another process", () => {
  const failure = (code: string): Failure =>
    cannotListen("try", "127.0.0.1:1", Object.assign(new Error(code), { code }));
  assert.equal([isPortTaken(failure("EADDRINUSE")), isPortTaken(failure("EACCES"))], [true, false]);
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

test("whatever was thrown has words", () => {
  assert.equal(
    [wordsOf(new TypeError("no such thing")), wordsOf("odd"), wordsOf(undefined)],
    ["no such thing", "odd", "undefined"],
  );
});

test("a shortage of this process is held against no peer", () => {
  for (const code of ["EMFILE", "ENFILE", "ENOBUFS"]) {
    const { origin, code: told } = failureFrom(Object.assign(new Error(code), { code }), "backend");
    assert.equal([origin, told], ["proxy", "backend-refused"], code);
  }
  assert.not(isShortage(Object.assign(new Error("refused"), { code: "ECONNREFUSED" })));
});

test("the result of a failed dial follows from Node's code: silence, an untrusted certificate, or a refusal", () => {
  const coded = (code: string): Error => Object.assign(new Error(code), { code });
  const met = (...codes: string[]): string[] => codes.map((code) => metOf(coded(code)));
  assert.equal(met("ETIMEDOUT", "EHOSTUNREACH"), ["silence", "silence"]);
  assert.equal(met("ECONNREFUSED", "ECONNRESET", "ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED"), [
    "refusal",
    "refusal",
    "refusal",
  ]);
  const distrusted = ["ERR_TLS_CERT_ALTNAME_INVALID", "CERT_HAS_EXPIRED", "SELF_SIGNED_CERT_IN_CHAIN"];
  assert.equal([...new Set(met(...distrusted, "UNABLE_TO_VERIFY_LEAF_SIGNATURE"))], ["untrusted"]);
  assert.is(metOf(new Failure("backend-refused", "backend", "late", timeout("late"))), "silence");
  assert.is(metOf("odd"), "refusal");
});

test.run();
