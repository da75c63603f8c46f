/**
 * A certificate as Go's crypto/x509 reads it, because kube-apiserver and most of its clients do. Node describes only
 * some of the fields, as OpenSSL reads them, and OpenSSL accepts more.
 */
import type { X509Certificate } from "node:crypto";
import { constraintsIn, type NameConstraints, nameTags } from "./constraints.ts";
import { type Element, elementsIn, none, nth, oidOf, partsOf, tags } from "./der.ts";
import { type Attribute, attributesOf, isAscii } from "./names.ts";

export type KeyType = "rsa" | "ec" | "ed25519";

export type Certificate = Extensions & {
  readonly x509: X509Certificate;
  readonly version: number;
  /** Names as they are encoded: Go compares an issuer with the CA's subject byte by byte. */
  readonly issuer: Buffer;
  readonly subject: Buffer;
  readonly attributes: readonly Attribute[];
  readonly publicKey: Buffer;
  /** Undefined: Go cannot use the key. */
  readonly keyType: KeyType | undefined;
  /** The type of the key that can have made the signature; undefined: Go does not accept the algorithm. */
  readonly signedBy: KeyType | undefined;
};

type Extensions = {
  /** Undefined: the certificate has no basicConstraints. */
  readonly isCa?: boolean;
  readonly maxPathLength?: number;
  /** False if there is a keyUsage without keyCertSign. Go uses no other bit of it. */
  readonly mayCertify: boolean;
  /** Object identifiers of extendedKeyUsage; empty: good for every purpose. */
  readonly purposes: readonly string[];
  readonly altNames: readonly Element[];
  readonly constraints?: NameConstraints;
  /** True if the certificates below must state a policy. */
  readonly needsPolicy: boolean;
  /** True for a critical extension that Go does not know. */
  readonly hasUnknownCritical: boolean;
};

/** Returns a text that says why Go refuses to parse the certificate. */
export function readCertificate(x509: X509Certificate): Certificate | string {
  const whole = partsOf(nth(elementsIn(x509.raw), 0));
  const fields = partsOf(nth(whole, 0)) ?? [];
  const version = versionIn(nth(fields, 0));
  const field = (at: number): Element => nth(fields, version === 1 ? at : at + 1);
  const [algorithm, issuer, subject, key] = [field(1), field(2), field(4), field(5)];
  const attributes = attributesOf(subject);
  const extensions = version < 3 ? noExtensions : extensionsIn(fields.slice(7));
  if (version > 3) return "its version is unknown";
  if (x509.serialNumber.startsWith("-")) return "its serial number is negative";
  if (!algorithm.whole.equals(nth(whole, 1).whole)) return "it states two signature algorithms";
  if (attributes === undefined || attributesOf(issuer) === undefined)
    return "a name in it cannot be read as text";
  if (extensions === undefined) return "an extension of it is malformed, or occurs twice";
  const names = { issuer: issuer.whole, subject: subject.whole, attributes };
  const keys = { publicKey: key.whole, keyType: keyTypeOf(key), signedBy: signerOf(algorithm) };
  return { x509, version, ...names, ...keys, ...extensions };
}

/** A certificate of version 1 does not have this field (RFC 5280 §4.1). */
function versionIn({ tag, value }: Element): number {
  return tag === 0xa0 ? (value.at(2) ?? 3) + 1 : 1;
}

/** The algorithms of public keys with the only parameters that Go accepts: for RSA, NULL; for EC, one of four curves. */
const keyAlgorithms = new Map<string, KeyType>([
  ["300d06092a864886f70d0101010500", "rsa"],
  ["301006072a8648ce3d020106052b81040021", "ec"], // P-224
  ["301306072a8648ce3d020106082a8648ce3d030107", "ec"], // P-256
  ["301006072a8648ce3d020106052b81040022", "ec"], // P-384
  ["301006072a8648ce3d020106052b81040023", "ec"], // P-521
  ["300506032b6570", "ed25519"],
]);

function keyTypeOf(key: Element): KeyType | undefined {
  const [algorithm = none, bits = none] = partsOf(key) ?? [];
  const type = keyAlgorithms.get(algorithm.whole.toString("hex"));
  // Go does not read compressed points.
  return type === "ec" && bits.value[1] !== 4 ? undefined : type;
}

/** The signatures that Go verifies, with SHA-256, SHA-384 and SHA-512. It refuses MD5 and SHA-1. */
const signatures = new Map<string, KeyType>([
  ["2a864886f70d01010b", "rsa"],
  ["2a864886f70d01010c", "rsa"],
  ["2a864886f70d01010d", "rsa"],
  ["2a8648ce3d040302", "ec"],
  ["2a8648ce3d040303", "ec"],
  ["2a8648ce3d040304", "ec"],
]);

/**
 * RSASSA-PSS with one hash for message and mask, and a salt as long as the hash. The hash's parameters are NULL or
 * absent (RFC 4055 §3.1).
 */
const pss =
  /^30..06092a864886f70d01010a30..a0..30..060960864801650304020([123])(?:0500)?a1..30..06092a864886f70d01010830..060960864801650304020\1(?:0500)?a2030201([234]0)$/;

function signerOf(algorithm: Element): KeyType | undefined {
  const encoding = algorithm.whole.toString("hex");
  if (encoding === "300506032b6570") return "ed25519";
  const [, hash, salt] = pss.exec(encoding) ?? [];
  if (hash !== undefined) return salt === `${Number(hash) + 1}0` ? "rsa" : undefined;
  return signatures.get(oidOf(nth(partsOf(algorithm), 0)));
}

const noExtensions: Extensions = {
  mayCertify: true,
  purposes: [],
  altNames: [],
  needsPolicy: false,
  hasUnknownCritical: false,
};

/** Reads the optional fields at the end. Returns undefined if an extension is malformed or occurs twice. */
function extensionsIn(optional: readonly Element[]): Extensions | undefined {
  let found = noExtensions;
  const seen = new Set<string>();
  const field = optional.find(({ tag }) => tag === 0xa3);
  const list = field === undefined ? [] : partsOf(nth(elementsIn(field.value), 0));
  for (const extension of list ?? [none]) {
    const parts = partsOf(extension);
    const [oid, second, last] = [oidOf(nth(parts, 0)), nth(parts, 1), nth(parts, -1)];
    if (last.tag !== tags.bytes || seen.has(oid)) return undefined;
    seen.add(oid);
    const isCritical = second.tag === tags.boolean && second.value[0] !== 0;
    const read = (readers[oid] ?? unknown)(nth(elementsIn(last.value), 0), isCritical);
    if (read === undefined) return undefined;
    found = { ...found, ...read };
  }
  return found;
}

type Reader = (value: Element, isCritical: boolean) => Partial<Extensions> | undefined;

const unknown: Reader = (_value, isCritical) => (isCritical ? { hasUnknownCritical: true } : {});

/** For an extension with which Go's verifier does nothing, although it may be critical. */
const ignored: Reader = () => ({});

/** Read an extension. Return undefined if it is malformed. */
const readers: Readonly<Record<string, Reader>> = {
  "551d0f": readKeyUsage,
  "551d11": readAltNames,
  "551d13": readBasicConstraints,
  "551d1e": readNameConstraints,
  "551d1f": ignored, // where revocation lists are
  "551d20": ignored, // policies
  "551d21": ignored, // their mappings
  "551d24": readPolicyConstraints,
  "551d25": readPurposes,
  "551d36": ignored, // inhibitAnyPolicy
};

function readKeyUsage({ tag, value }: Element): Partial<Extensions> | undefined {
  const [, first = 0, second = 0] = value;
  // Go treats a keyUsage without any bit as if there were none.
  const mayCertify = (first & 4) !== 0 || (first === 0 && second === 0);
  return tag === tags.bits ? { mayCertify } : undefined;
}

function readBasicConstraints(value: Element): Partial<Extensions> | undefined {
  const list = partsOf(value);
  const [first, length] = [nth(list, 0), nth(list, -1)];
  const isCa = first.tag === tags.boolean && first.value[0] === 0xff;
  // A number of several bytes limits nothing, because no chain is that long.
  const isLimit = length.tag === tags.integer && length.value.length === 1;
  return list && { isCa, ...(isLimit ? { maxPathLength: length.value.readUInt8() } : {}) };
}

function readNameConstraints(value: Element): Partial<Extensions> | undefined {
  const constraints = constraintsIn(value);
  const { permitted, excluded } = constraints ?? { permitted: [none], excluded: [] };
  return constraints && [...permitted, ...excluded].every(isKnownName) ? { constraints } : undefined;
}

function readPolicyConstraints(value: Element): Partial<Extensions> | undefined {
  const list = partsOf(value);
  return list && { needsPolicy: nth(list, 0).tag === 0x80 };
}

function readPurposes(value: Element): Partial<Extensions> | undefined {
  const purposes = (partsOf(value) ?? [none]).map((purpose) => oidOf(purpose));
  return purposes.includes("") ? undefined : { purposes };
}

/** A critical extension without a name of a type that Go knows is one that Go does not know. */
function readAltNames(value: Element, isCritical: boolean): Partial<Extensions> | undefined {
  const altNames = partsOf(value) ?? [none];
  const known = altNames.filter(isKnownName);
  if (altNames[0] === none || !known.every(isWellFormed)) return undefined;
  return { altNames, ...(isCritical && known.length === 0 ? { hasUnknownCritical: true } : {}) };
}

function isKnownName({ tag }: Element): boolean {
  return Object.values<number>(nameTags).includes(tag);
}

function isWellFormed({ tag, value }: Element): boolean {
  return tag === nameTags.address ? value.length === 4 || value.length === 16 : isAscii(value);
}
