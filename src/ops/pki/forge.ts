/**
 * Lets node-forge, which supports only RSA, write certificates with EC keys. In the ASN.1 tree that node-forge creates,
 * the public key and the signature are replaced by those from node:crypto.
 */
import { type KeyObject, sign } from "node:crypto";
import type * as NodeForge from "node-forge";

export type Forge = typeof NodeForge;
type Tree = NodeForge.asn1.Asn1;

// Functions of node-forge that its published types lack.
declare module "node-forge" {
  namespace pki {
    function getTBSCertificate(certificate: pki.Certificate): asn1.Asn1;
    function getCertificationRequestInfo(request: pki.CertificateSigningRequest): asn1.Asn1;
  }
}

/** Loads node-forge on first use, because it takes 11 MB. */
export async function loadForge(): Promise<Forge> {
  return (await import("node-forge")).default;
}

/** Returns a placeholder that forge accepts as an RSA key. `replacePart` later inserts the real key. */
export function placeholderKey(forge: Forge): NodeForge.pki.rsa.PublicKey {
  const one = new forge.jsbn.BigInteger("1");
  return forge.pki.setRsaPublicKey(one, one);
}

export function replacePart(tree: Tree, index: number, part: Tree): void {
  if (!Array.isArray(tree.value)) throw new TypeError("Forge returned a tree without parts");
  tree.value[index] = part;
}

export function publicKeyOf(forge: Forge, key: KeyObject): Tree {
  return nodeOf(forge, key.export({ type: "spki", format: "der" }));
}

/** AlgorithmIdentifiers of ecdsa-with-SHA256 (RFC 5758 §3.2) and sha256WithRSAEncryption. */
const algorithms = {
  ec: Buffer.from("300a06082a8648ce3d040302", "hex"),
  rsa: Buffer.from("300d06092a864886f70d01010b0500", "hex"),
};

export function algorithmOf(forge: Forge, signer: KeyObject): Tree {
  return nodeOf(forge, signer.asymmetricKeyType === "ec" ? algorithms.ec : algorithms.rsa);
}

/** Signs `tree` and returns PEM. Certificates and certificate requests have the form {tree, algorithm, signature}. */
export function sealed(
  forge: Forge,
  { type, tree, signer }: { readonly type: string; readonly tree: Tree; readonly signer: KeyObject },
): string {
  const { SEQUENCE, BITSTRING } = forge.asn1.Type;
  const universal = forge.asn1.Class.UNIVERSAL;
  const signature = `\u0000${sign("sha256", bytesOf(forge, tree), signer).toString("latin1")}`;
  const whole = forge.asn1.create(universal, SEQUENCE, true, [
    tree,
    algorithmOf(forge, signer),
    forge.asn1.create(universal, BITSTRING, false, signature),
  ]);
  return forge.pem.encode({ type, body: bytesOf(forge, whole).toString("latin1") }).replaceAll("\r", "");
}

function nodeOf(forge: Forge, der: Buffer): Tree {
  return forge.asn1.fromDer(der.toString("latin1"));
}

function bytesOf(forge: Forge, tree: Tree): Buffer {
  return Buffer.from(forge.asn1.toDer(tree).getBytes(), "latin1");
}
