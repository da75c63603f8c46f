import { X509Certificate } from "node:crypto";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { readCertificate } from "../../src/x509/certificate.ts";
import { mostSignatureChecks, purposes, rootsIn, verify } from "../../src/x509/verify.ts";
import { basicConstraints, keysFor, nameOf, writeCertificate } from "../support/x509-writer.ts";

const test = suite("x509/verify");

const name = nameOf(["CN", "kubernetes"]);
const cas = Array.from({ length: mostSignatureChecks + 1 }, (_, at) => {
  const keys = keysFor("P-256", `same name ${at}`);
  return { name, keys, pem: writeCertificate({ name, keys, extensions: [basicConstraints(true)] }) };
});
const roots = rootsIn(cas.map(({ pem }) => pem).join(""));

/** Verifies a certificate of the CA with this number. */
function outcomeOf(at: number): string {
  const pem = writeCertificate({
    name: nameOf(["CN", "a"]),
    keys: keysFor("P-256", "leaf"),
    issuer: cas[at],
  });
  const leaf = readCertificate(new X509Certificate(pem));
  if (typeof leaf === "string") return leaf;
  const verified = verify(leaf, [], { roots, purpose: purposes.client, wallMs: Date.now() });
  return typeof verified === "string" ? verified : "verified";
}

test("as many signatures are checked as the limit allows, and no more", () => {
  assert.is(outcomeOf(0), "verified");
  assert.is(outcomeOf(mostSignatureChecks - 1), "verified");
  assert.match(outcomeOf(mostSignatureChecks), "unknown authority");
});

test.run();
