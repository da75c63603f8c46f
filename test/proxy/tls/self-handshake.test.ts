import { X509Certificate } from "node:crypto";
import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { Failure } from "../../../src/base/failure.ts";
import type { Pair } from "../../../src/ops/pki/pki.ts";
import { tryHandshake } from "../../../src/proxy/tls/certificates.ts";
import { testPki } from "../../support/pki.ts";
import { within } from "../../support/within.ts";

const test = suite("proxy/tls/self-handshake");

const fingerprintOf = ({ certificate }: Pair): string => new X509Certificate(certificate).fingerprint256;

function shake(context: tls.SecureContext, fingerprint: string): Promise<Failure | undefined> {
  return within(20_000, "the handshake", tryHandshake(context, fingerprint, wallClock));
}

test("a good certificate gets a client through", async () => {
  const { authority, serving } = await testPki();
  const pairs = [serving, authority.issue({ name: "x", keyType: "rsa" })];
  for (const pair of pairs) {
    const context = tls.createSecureContext({ cert: pair.certificate, key: pair.key });
    assert.is(await shake(context, fingerprintOf(pair)), undefined);
  }
});

test("a context that Node accepts without a word fails here: empty, or EC mixed with RSA", async () => {
  const { authority, serving } = await testPki();
  const rsa = authority.issue({ name: "x", keyType: "rsa" });
  const useless = [
    {},
    { cert: "", key: "" },
    { cert: serving.certificate, key: "" },
    { cert: serving.certificate, key: rsa.key },
  ];
  for (const options of useless) {
    const outcome = await shake(tls.createSecureContext(options), fingerprintOf(serving));
    assert.instance(outcome, Failure, Object.keys(options).join());
  }
});

test("another certificate than the expected one is noticed", async () => {
  const { authority, serving } = await testPki();
  const other = authority.issue({ name: "x" });
  const outcome = await shake(
    tls.createSecureContext({ cert: other.certificate, key: other.key }),
    fingerprintOf(serving),
  );
  assert.is(outcome?.message, "the handshake presents another certificate");
});

test("a handshake that does not end is given up", async () => {
  const { serving } = await testPki();
  const context = tls.createSecureContext({ cert: serving.certificate, key: serving.key });
  // With this clock, the timeout of ten seconds expires before the first TLS record is sent.
  const hasty = { ...wallClock, after: soonest };
  const outcome = await within(20_000, "the end", tryHandshake(context, "", hasty));
  assert.is(outcome?.message, "the handshake timed out");
});

function soonest(_ms: number, run: () => void): () => void {
  queueMicrotask(run);
  return () => undefined;
}

test.run();
