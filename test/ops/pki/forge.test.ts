import { generateKeyPairSync, verify } from "node:crypto";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { loadForge, publicKeyOf, replacePart, sealed } from "../../../src/ops/pki/forge.ts";

const test = suite("ops/pki/forge");

test("a tree is sealed by an EC key that forge itself could not hold", async () => {
  const forge = await loadForge();
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const tree = publicKeyOf(forge, publicKey);
  const pem = sealed(forge, { type: "THING", tree, signer: privateKey });
  assert.match(pem, /^-----BEGIN THING-----\n/);
  // The structure is {tree, algorithm, signature}, and the signature covers `tree`.
  const der = Buffer.from(pem.replaceAll(/-----.*-----|\s/g, ""), "base64");
  const spki = publicKey.export({ type: "spki", format: "der" });
  const at = der.indexOf(spki);
  assert.ok(at > 0 && at <= 4);
  const rest = der.subarray(at + spki.length);
  // Skips the AlgorithmIdentifier, which takes 12 bytes, and the head of the bit string, which takes three: the last of
  // them counts unused bits.
  assert.ok(verify("sha256", spki, publicKey, rest.subarray(12 + 3)));
});

test("a part is replaced only where there are parts", async () => {
  const forge = await loadForge();
  const leaf = forge.asn1.create(forge.asn1.Class.UNIVERSAL, forge.asn1.Type.OCTETSTRING, false, "x");
  assert.throws(() => replacePart(leaf, 0, leaf), /without parts/);
});

test.run();
