import { createPrivateKey, generateKeyPairSync } from "node:crypto";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { Failure } from "../../../src/base/failure.ts";
import { createAuthority } from "../../../src/ops/pki/pki.ts";
import {
  checkPair,
  clockSkewMs,
  hasAnyOf,
  type ServingPair,
  splitPem,
} from "../../../src/proxy/tls/serving-pair.ts";
import { testPki } from "../../support/pki.ts";

const test = suite("proxy/tls/serving-pair");

const { authority, serving } = await testPki();
const now = wallClock.wall();

function problemOf(certificate: string, key: string): string | undefined {
  const outcome = checkPair(certificate, key, now);
  return outcome instanceof Failure ? outcome.message : undefined;
}

test("EC and RSA pairs pass, whatever stands around them", () => {
  const rsa = authority.issue({ name: "x", keyType: "rsa" });
  assert.is(problemOf(rsa.certificate, rsa.key), undefined);
  assert.is(problemOf(`remark\r\n${serving.certificate}`, `\n${serving.key}\n`), undefined);
  const secret = serving.key + serving.certificate;
  assert.is(problemOf(secret, secret), undefined);
});

test("keys in their older forms pass: SEC1 with its parameters, PKCS#1", () => {
  const sec1 = createPrivateKey(serving.key).export({ type: "sec1", format: "pem" }).toString();
  const parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
  assert.is(problemOf(serving.certificate, parameters + sec1), undefined);
  const rsa = authority.issue({ name: "x", keyType: "rsa" });
  const pkcs1 = createPrivateKey(rsa.key).export({ type: "pkcs1", format: "pem" }).toString();
  assert.is(problemOf(rsa.certificate, pkcs1), undefined);
});

test("what is no certificate is reported without being quoted (A50)", () => {
  const key = serving.key;
  assert.is(problemOf("", key), "no certificate among its 0 characters");
  assert.is(problemOf("<nil>", key), "no certificate among its 5 characters");
  assert.is(problemOf(key, key), "no certificate among its blocks: PRIVATE KEY");
  const broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  assert.is(problemOf(serving.certificate + broken, key), "certificate 2 of 2 is broken");
  assert.is(problemOf(serving.certificate.slice(0, -30), key), "the file ends inside a CERTIFICATE");
});

test("what is no private key is reported without being quoted", () => {
  const certificate = serving.certificate;
  assert.is(problemOf(certificate, ""), "no private key among the key file's 0 characters");
  assert.is(problemOf(certificate, certificate), "no private key among the key file's blocks: CERTIFICATE");
  assert.is(problemOf(certificate, serving.key.slice(0, 100)), "the key file ends inside its PRIVATE KEY");
  assert.match(problemOf(certificate, serving.key + serving.key) ?? "", /^2 private keys/);
  const broken = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
  assert.is(problemOf(certificate, broken), "the private key is broken");
  const { privateKey } = generateKeyPairSync("ec", {
    namedCurve: "P-256",
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "x" },
  });
  assert.is(problemOf(certificate, privateKey), "the private key is encrypted with a passphrase");
});

test("a key of another certificate, or of another kind, is no pair", () => {
  const other = authority.issue({ name: "x" });
  const rsa = authority.issue({ name: "x", keyType: "rsa" });
  assert.is(
    problemOf(serving.certificate, other.key),
    'the private key is not that of the certificate of "CN=watchkeeper"',
  );
  assert.is(
    problemOf(serving.certificate, rsa.key),
    'the key of "CN=watchkeeper" is ec, the private key is rsa',
  );
  assert.is(problemOf(rsa.certificate, serving.key), 'the key of "CN=x" is rsa, the private key is ec');
});

function pairOf(hosts: readonly string[], name = "a"): ServingPair {
  const { certificate, key } = authority.issue({ name, hosts });
  const pair = checkPair(certificate, key, now);
  if (pair instanceof Failure) throw new Error(pair.message);
  return pair;
}

test("names are found as clients find them, whatever label a wildcard stands for", () => {
  const wild = pairOf(["*.example.com"]);
  assert.ok(hasAnyOf(["b.test", "b.example.com"], wild));
  assert.ok(hasAnyOf(["*.example.com"], wild));
  assert.not.ok(hasAnyOf(["a.b.example.com", "example.com"], wild));
  assert.not.ok(hasAnyOf(["*.example.com"], pairOf(["a.example.com"])));
});

test("a certificate has a name if Go finds it: no part of a label is a wildcard, and no common name counts", () => {
  const rows: readonly (readonly [string, string, boolean])[] = [
    ["*.example.com", "B.Example.com.", true],
    ["*.Example.COM", "b.example.com", true],
    ["v*.example.com", "v1.example.com", false],
    ["*v.example.com", "1v.example.com", false],
    ["b.*.com", "b.example.com", false],
    ["*", "localhost", false],
    ["*.test", "a.test", true],
    ["a.test", "a.test.", true],
  ];
  for (const [named, asked, isIn] of rows)
    assert.is(hasAnyOf([asked], pairOf([named])), isIn, `${named} ${asked}`);
  assert.not.ok(hasAnyOf(["a.test"], pairOf(["10.0.0.1"], "a.test")));
});

test("a chain is put in order, leaf first, with strangers behind it", async () => {
  const stranger = await createAuthority({ name: "stranger", clock: wallClock });
  const mixed = stranger.certificate + authority.certificate + serving.certificate;
  const pair = checkPair(mixed, serving.key, now);
  assert.not.instance(pair, Failure);
  if (pair instanceof Failure) return;
  const order = splitPem(pair.chain).map(({ text }) => text);
  assert.equal(order, [serving.certificate, authority.certificate, stranger.certificate]);
});

test("a certificate out of its dates is refused; a clock that is a little behind is forgiven", () => {
  const issue = (notBefore: number, notAfter: number): string | undefined => {
    const pair = authority.issue({ name: "x", notBefore, notAfter });
    return problemOf(pair.certificate, pair.key);
  };
  assert.match(issue(now - 20_000, now - 10_000) ?? "", /^the certificate of "CN=x" expired at /);
  assert.match(issue(now + clockSkewMs + 5000, now + 1e9) ?? "", /^the certificate of "CN=x" is not valid/);
  assert.is(issue(now + clockSkewMs - 5000, now + 1e9), undefined);
});

test("the chain ends with the certificate that expires first", async () => {
  const soon = await createAuthority({ name: "soon", notAfter: now + 3_600_000, clock: wallClock });
  const leaf = soon.issue({ name: "x", notBefore: now - 1000 });
  const pair = checkPair(leaf.certificate + soon.certificate, leaf.key, now);
  const inSeconds = Math.floor((now + 3_600_000) / 1000) * 1000;
  assert.is(pair instanceof Failure ? pair.message : pair.notAfter, inSeconds);
});

test("every cut of either file is refused", () => {
  for (let length = 0; length < serving.certificate.trimEnd().length; length += 7)
    assert.type(problemOf(serving.certificate.slice(0, length), serving.key), "string");
  for (let length = 0; length < serving.key.trimEnd().length; length += 7)
    assert.type(problemOf(serving.certificate, serving.key.slice(0, length)), "string");
});

test.run();
