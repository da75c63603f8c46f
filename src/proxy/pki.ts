/**
 * Makes authorities and the certificates that they sign, for the demo and for tests. Node can read certificates but
 * not make them; node-forge makes them but knows RSA only. So forge writes names, dates and extensions, and node:crypto
 * makes the keys and signs. EC P-256 by default: a key takes 0.1 ms, not 100; a handshake's signature 13 µs, not 200.
 */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import type * as Forge from "node-forge";
import { isIpAddress } from "../address.ts";
import { type Clock, dateOf } from "../clock.ts";

/** A certificate and its private key, both PEM. */
export type Pair = { readonly certificate: string; readonly key: string };

export type KeyType = "ec" | "rsa";

export type Wanted = {
  /** The subject's common name. */
  readonly name: string;
  /** DNS names and IP addresses that the certificate is good for. */
  readonly hosts?: readonly string[];
  readonly usage?: "server" | "client";
  readonly keyType?: KeyType;
  /** Milliseconds since 1970; an hour ago and in a year when left out. */
  readonly notBefore?: number;
  readonly notAfter?: number;
};

export type Authority = { readonly certificate: string; issue(wanted: Wanted): Pair };

const dayMs = 86_400_000;

/** An authority of its own, good for ten years. Asynchronous because forge (11 MB) is loaded when first needed. */
export async function createAuthority(
  options: Pick<Wanted, "name" | "keyType" | "notAfter"> & { readonly clock: Clock },
): Promise<Authority> {
  const { default: forge } = await import("node-forge");
  const { clock, name, keyType } = options;
  const keys = makeKeys(keyType);
  const nowMs = clock.wall();
  const own: Certificate = {
    subject: name,
    issuer: name,
    publicKey: keys.publicKey,
    notBefore: nowMs - dayMs,
    notAfter: options.notAfter ?? nowMs + 3650 * dayMs,
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, digitalSignature: true, critical: true },
      { name: "subjectKeyIdentifier", value: `\u0004\u0014${keyIdOf(keys.publicKey)}` },
    ],
  };
  return {
    certificate: write(forge, own, keys.privateKey),
    issue(wanted) {
      const leafKeys = makeKeys(wanted.keyType);
      const leaf: Certificate = {
        subject: wanted.name,
        issuer: name,
        publicKey: leafKeys.publicKey,
        notBefore: wanted.notBefore ?? clock.wall() - dayMs / 24,
        notAfter: wanted.notAfter ?? clock.wall() + 365 * dayMs,
        extensions: extensionsOf(wanted, keyIdOf(keys.publicKey)),
      };
      return { certificate: write(forge, leaf, keys.privateKey), key: pemOf(leafKeys.privateKey) };
    },
  };
}

type Keys = { readonly publicKey: KeyObject; readonly privateKey: KeyObject };

function makeKeys(keyType: KeyType = "ec"): Keys {
  if (keyType === "rsa") return generateKeyPairSync("rsa", { modulusLength: 2048 });
  return generateKeyPairSync("ec", { namedCurve: "P-256" });
}

function pemOf(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}

/** Any value that is the key's own will do (RFC 5280 §4.2.1.2). 20 bytes, as forge wants them: a latin1 string. */
function keyIdOf(publicKey: KeyObject): string {
  const spki = publicKey.export({ type: "spki", format: "der" });
  return createHash("sha256").update(spki).digest().toString("latin1", 0, 20);
}

function extensionsOf({ hosts = [], usage = "server" }: Wanted, issuerKeyId: string): object[] {
  const altNames = hosts.map((host) =>
    isIpAddress(host) ? { type: 7, ip: host } : { type: 2, value: host },
  );
  return [
    { name: "basicConstraints", cA: false, critical: true },
    { name: "keyUsage", digitalSignature: true, keyEncipherment: true, critical: true },
    { name: "extKeyUsage", serverAuth: usage === "server", clientAuth: usage === "client" },
    { name: "authorityKeyIdentifier", value: `\u0030\u0016\u0080\u0014${issuerKeyId}` },
    ...(altNames.length > 0 ? [{ name: "subjectAltName", altNames }] : []),
  ];
}

type Certificate = {
  readonly subject: string;
  readonly issuer: string;
  readonly publicKey: KeyObject;
  readonly notBefore: number;
  readonly notAfter: number;
  readonly extensions: object[];
};

/** AlgorithmIdentifier of ecdsa-with-SHA256 (RFC 5758 §3.2: no parameters) and of sha256WithRSAEncryption (NULL). */
const algorithms = {
  ec: Buffer.from("300a06082a8648ce3d040302", "hex"),
  rsa: Buffer.from("300d06092a864886f70d01010b0500", "hex"),
};

// Forge's own step between a certificate and its signature; missing in the published types.
declare module "node-forge" {
  namespace pki {
    function getTBSCertificate(certificate: pki.Certificate): asn1.Asn1;
  }
}

function write(forge: typeof Forge, wanted: Certificate, signer: KeyObject): string {
  const node = (der: Buffer): Forge.asn1.Asn1 => forge.asn1.fromDer(der.toString("latin1"));
  const bytes = (tree: Forge.asn1.Asn1): Buffer => Buffer.from(forge.asn1.toDer(tree).getBytes(), "latin1");
  const algorithm = node(signer.asymmetricKeyType === "ec" ? algorithms.ec : algorithms.rsa);
  const tree = forge.pki.getTBSCertificate(draft(forge, wanted));
  if (!Array.isArray(tree.value)) throw new TypeError("Forge returned a certificate without parts");
  // Parts of RFC 5280's TBSCertificate: 2 is the algorithm of the signature, 6 the public key.
  tree.value[2] = algorithm;
  tree.value[6] = node(wanted.publicKey.export({ type: "spki", format: "der" }));
  const { SEQUENCE, BITSTRING } = forge.asn1.Type;
  const universal = forge.asn1.Class.UNIVERSAL;
  const signature = `\u0000${sign("sha256", bytes(tree), signer).toString("latin1")}`;
  const whole = forge.asn1.create(universal, SEQUENCE, true, [
    tree,
    algorithm,
    forge.asn1.create(universal, BITSTRING, false, signature),
  ]);
  return forge.pem
    .encode({ type: "CERTIFICATE", body: bytes(whole).toString("latin1") })
    .replaceAll("\r", "");
}

function draft(forge: typeof Forge, wanted: Certificate): Forge.pki.Certificate {
  const certificate = forge.pki.createCertificate();
  const one = new forge.jsbn.BigInteger("1");
  // Forge cannot hold an EC key: placeholders, whose place the real key and algorithm take in `write`.
  certificate.siginfo.algorithmOid = "1.2.840.113549.1.1.11";
  certificate.publicKey = forge.pki.setRsaPublicKey(one, one);
  // Positive (first octet below 80) and without a leading zero, as DER has it.
  certificate.serialNumber = `5a${randomBytes(15).toString("hex")}`;
  certificate.validity.notBefore = dateOf(wanted.notBefore);
  certificate.validity.notAfter = dateOf(wanted.notAfter);
  certificate.setSubject([{ name: "commonName", value: wanted.subject }]);
  certificate.setIssuer([{ name: "commonName", value: wanted.issuer }]);
  certificate.setExtensions(wanted.extensions);
  return certificate;
}
