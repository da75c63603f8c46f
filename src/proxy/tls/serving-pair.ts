/**
 * Checks that a certificate fits its key and is usable. Without this check, Node accepts an empty file, or an RSA
 * certificate with an EC key, and then every handshake fails.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { Failure } from "../../base/failure.ts";
import { type Certificate, readCertificate } from "../../x509/certificate.ts";
import { hasName, nameTags } from "../../x509/constraints.ts";
import { purposes, rootsIn, verifyPresented } from "../../x509/verify.ts";

/** Maximum milliseconds by which a CA's clock may be ahead of the proxy's (Kerberos has the same tolerance). */
export const clockSkewMs = 300_000;

/** A certificate with its key, both checked. `chain`: the leaf first, then its intermediates in order. */
export type ServingPair = {
  readonly chain: string;
  readonly key: string;
  readonly fingerprint: string;
  /** The earliest expiry in the chain, in ms since 1970. */
  readonly notAfter: number;
};

/** `use`: whether the peers of this pair are clients or servers, which must accept it; undefined: not checked. */
export function checkPair(
  certText: string,
  keyText: string,
  wallMs: number,
  use?: keyof typeof purposes,
): ServingPair | Failure {
  const certificates = certificatesIn(certText);
  if (certificates instanceof Failure) return certificates;
  const key = keyIn(keyText);
  if (key instanceof Failure) return key;
  const leaf = certificates.find((certificate) => certificate.checkPrivateKey(key));
  if (leaf === undefined) return notAPair(certificates, key);
  const chain = chainFrom(leaf, certificates);
  // Other certificates of the file come last: clients ignore them, but a cross-signed one may be useful.
  const all = [...chain, ...certificates.filter((certificate) => !chain.includes(certificate))];
  const failure = outOfDate(chain, wallMs) ?? (use && faultForGo(all, chain, { use, wallMs }));
  if (failure !== undefined) return failure;
  return {
    chain: all.map((certificate) => certificate.toString()).join(""),
    key: key.export({ type: "pkcs8", format: "pem" }).toString(),
    fingerprint: leaf.fingerprint256,
    notAfter: Math.min(...chain.map((certificate) => certificate.validToDate.getTime())),
  };
}

/** Returns all certificates of a PEM file. A single truncated or broken one makes the whole file invalid. */
export function certificatesIn(text: string): readonly X509Certificate[] | Failure {
  const blocks = splitPem(text);
  const cut = blocks.find((block) => !block.isWhole);
  if (cut !== undefined) return bad(`the file ends inside a ${cut.type}`);
  const wanted = blocks.filter(({ type }) => type === "CERTIFICATE" || type === "X509 CERTIFICATE");
  if (wanted.length === 0) return bad(`no certificate among its ${contentsOf(text, blocks)}`);
  const certificates: X509Certificate[] = [];
  for (const [index, block] of wanted.entries()) {
    try {
      certificates.push(new X509Certificate(block.text));
    } catch (reason) {
      return bad(`certificate ${index + 1} of ${wanted.length} is broken`, reason);
    }
  }
  return certificates;
}

export function subjectsIn(text: string): readonly string[] {
  const certificates = certificatesIn(text);
  return certificates instanceof Failure ? [] : certificates.map(({ subject }) => oneLine(subject));
}

/** Joins the parts of a name, which Node returns on separate lines; undefined for a name without parts. */
function oneLine(subject: string | undefined): string {
  return subject?.replaceAll("\n", ", ") ?? "";
}

function keyIn(text: string): KeyObject | Failure {
  const blocks = splitPem(text);
  const keys = blocks.filter(({ type }) => type.endsWith("PRIVATE KEY"));
  const [key] = keys;
  if (key === undefined) return bad(`no private key among the key file's ${contentsOf(text, blocks)}`);
  if (keys.length > 1) return bad(`${keys.length} private keys in the key file, where one is expected`);
  if (!key.isWhole) return bad(`the key file ends inside its ${key.type}`);
  if (/ENCRYPTED/.test(key.text)) return bad("the private key is encrypted with a passphrase");
  try {
    return createPrivateKey(key.text);
  } catch (reason) {
    return bad("the private key is broken", reason);
  }
}

/** Describes a file without quoting it, because it may contain a key where a certificate is expected. */
function contentsOf(text: string, blocks: readonly PemBlock[]): string {
  if (blocks.length === 0) return `${text.length} characters`;
  return `blocks: ${blocks.map(({ type }) => type).join(", ")}`;
}

function notAPair(certificates: readonly X509Certificate[], key: KeyObject): Failure {
  const types = certificates.map((certificate) => certificate.publicKey.asymmetricKeyType);
  const isMix = !types.includes(key.asymmetricKeyType);
  const of = `of ${JSON.stringify(oneLine(certificates[0]?.subject ?? ""))}`;
  return bad(
    isMix
      ? `the key ${of} is ${String(types[0])}, the private key is ${String(key.asymmetricKeyType)}`
      : `the private key is not that of the certificate ${of}`,
  );
}

/** Returns the chain with each certificate before its issuer, as clients require, whatever the file's order. */
function chainFrom(leaf: X509Certificate, certificates: readonly X509Certificate[]): X509Certificate[] {
  const chain = [leaf];
  for (let last: X509Certificate | undefined = leaf; last !== undefined; ) {
    const subject: X509Certificate = last;
    last = certificates.find((issuer) => !chain.includes(issuer) && hasSigned(issuer, subject));
    if (last !== undefined) chain.push(last);
  }
  return chain;
}

/** Two CAs of one name differ only in their keys. */
function hasSigned(issuer: X509Certificate, subject: X509Certificate): boolean {
  try {
    return subject.issuer === issuer.subject && subject.verify(issuer.publicKey);
  } catch {
    return false; // a key that OpenSSL cannot use
  }
}

/**
 * Returns a Failure if kube-apiserver or a client that is written in Go would refuse the pair, whatever CA it trusts.
 * Node would present it all the same.
 */
function faultForGo(
  all: readonly X509Certificate[],
  chain: readonly X509Certificate[],
  { use, wallMs }: { readonly use: keyof typeof purposes; readonly wallMs: number },
): Failure | undefined {
  const roots = rootsIn(chain.at(-1)?.toString() ?? "");
  // A certificate may begin a little later, if the CA's clock is ahead.
  const now = Math.max(wallMs, ...chain.map(({ validFromDate }) => validFromDate.getTime()));
  const verified = verifyPresented(all, { roots, purpose: purposes[use], wallMs: now });
  const fault = typeof verified === "string" ? verified : faultOfServer(verified.leaf, use);
  const name = JSON.stringify(oneLine(all[0]?.subject ?? ""));
  const peers = use === "server" ? "clients" : "an apiserver";
  return fault === undefined ? undefined : bad(`${peers} would refuse the certificate of ${name}: ${fault}`);
}

/** Returns what a client misses in a server's certificate. */
function faultOfServer(
  { altNames, signedBy, issuer, subject }: Certificate,
  use: keyof typeof purposes,
): string | undefined {
  // If the issuer is not in the file, nothing else has judged the signature.
  if (signedBy === undefined && !issuer.equals(subject))
    return "its signature algorithm is unknown or insecure";
  const isNamed = altNames.some(({ tag }) => tag === nameTags.dns || tag === nameTags.address);
  return use === "client" || isNamed ? undefined : "it has no DNS name or IP address in subjectAltName";
}

/** Parsed leaf certificates, kept because their names are compared with each new `:authority` of a session. */
const leaves = new WeakMap<ServingPair, Certificate | string>();

/**
 * True if clients find at least one of `names` in the certificate. A name with "*." matches only a certificate with a
 * wildcard for the same domain.
 */
export function hasAnyOf(names: readonly string[], pair: ServingPair): boolean {
  const leaf = leaves.get(pair) ?? readCertificate(new X509Certificate(pair.chain));
  leaves.set(pair, leaf);
  return typeof leaf !== "string" && names.some((name) => hasName(leaf.altNames, name));
}

/** Returns a Failure for the first certificate that has expired or is not yet valid. */
export function outOfDate(chain: readonly X509Certificate[], wallMs: number): Failure | undefined {
  for (const { subject, validFrom, validFromDate, validTo, validToDate } of chain) {
    const name = JSON.stringify(oneLine(subject));
    if (validToDate.getTime() <= wallMs) return bad(`the certificate of ${name} expired at ${validTo}`);
    if (validFromDate.getTime() > wallMs + clockSkewMs)
      return bad(`the certificate of ${name} is not valid before ${validFrom}`);
  }
  return undefined;
}

function bad(message: string, cause?: unknown): Failure {
  return new Failure("bad-file", "proxy", message, cause);
}

type PemBlock = {
  /** The type in the block's first line, such as "CERTIFICATE" or "EC PRIVATE KEY". */
  readonly type: string;
  readonly text: string;
  /** False if the file ends inside the block, probably because the file is still being written. */
  readonly isWhole: boolean;
};

/** Returns the blocks of a PEM file. Text outside of blocks is ignored (`openssl x509 -text` writes pages of it). */
export function splitPem(text: string): readonly PemBlock[] {
  const blocks: PemBlock[] = [];
  let type: string | undefined;
  let lines: string[] = [];
  for (const line of text.split(/\r?\n/)) {
    const [, edge, name = ""] = /^\s*-----(BEGIN|END) ([A-Z0-9 ]{1,60})-----\s*$/.exec(line) ?? [];
    if (edge === "BEGIN") {
      if (type !== undefined) blocks.push({ type, text: lines.join("\n"), isWhole: false });
      type = name;
      lines = [];
    }
    if (type === undefined) continue;
    lines.push(line.trim());
    if (edge !== "END" || name !== type) continue;
    blocks.push({ type, text: `${lines.join("\n")}\n`, isWhole: true });
    type = undefined;
  }
  if (type !== undefined) blocks.push({ type, text: lines.join("\n"), isWhole: false });
  return blocks;
}
