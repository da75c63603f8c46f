/**
 * Decides whether a certificate leads to a trusted CA, by the rules of Go's crypto/x509 (Certificate.Verify), with
 * which kube-apiserver verifies its clients, and most of its clients verify it. OpenSSL decides otherwise in both
 * directions: it tries only the first of two CAs with the same name, compares names without their case, and refuses a
 * client certificate whose keyUsage lacks digitalSignature.
 */
import { X509Certificate } from "node:crypto";
import { wordsOf } from "../base/failure.ts";
import { type Certificate, readCertificate } from "./certificate.ts";
import { isPermitted, type NameConstraints } from "./constraints.ts";

export const purposes = { server: "2b06010505070301", client: "2b06010505070302" } as const;
const anyPurpose = "551d2500";

/**
 * Maximum number of signatures that are checked for one certificate. A chain of honest CAs needs one or two for each of
 * its certificates. A hostile client can present keys with which each check takes a millisecond.
 */
export const mostSignatureChecks = 32;

/** Maximum number of certificates that are read of those that a peer presents. OpenSSL accepts a hundred. */
export const mostPresented = 16;

/** Maximum number of comparisons of a name with a name constraint for one certificate. They take 0.3 s. */
const mostComparisons = 250_000;
const tooManyNames = "it has too many names for a CA's name constraints";

export type VerifyOptions = {
  readonly roots: readonly Certificate[];
  /** Object identifier of the purpose that every certificate of the chain must permit. */
  readonly purpose: string;
  /** The present time in ms since 1970. */
  readonly wallMs: number;
};

/** `notAfter`: when the first certificate of the chain expires, in ms since 1970; of several chains, the best. */
export type Verified = { readonly leaf: Certificate; readonly notAfter: number };

/** Returns the certificates of a CA bundle in PEM that Go can read. Ignores the others, as Go does. */
export function rootsIn(pem: string): readonly Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => readPem(block)).filter((one) => typeof one !== "string");
}

function readPem(block: string): Certificate | string {
  try {
    return readCertificate(new X509Certificate(block));
  } catch (reason) {
    return wordsOf(reason);
  }
}

/**
 * Verifies the first of the certificates that a peer has presented. Returns a text that says why it is not trusted. As
 * in Go, one certificate that cannot be read makes all of them useless.
 */
export function verifyPresented(
  presented: Iterable<X509Certificate>,
  options: VerifyOptions,
): Verified | string {
  const certificates: Certificate[] = [];
  try {
    for (const one of presented) {
      const certificate = readCertificate(one);
      if (typeof certificate === "string") return certificate;
      if (!hasUsableKey(certificate)) return "its public key is of a type or size that is not accepted";
      certificates.push(certificate);
      if (certificates.length === mostPresented) break;
    }
    const [leaf, ...intermediates] = certificates;
    return leaf === undefined ? "there is none" : verify(leaf, intermediates, options);
  } catch (reason) {
    return wordsOf(reason); // OpenSSL cannot read a certificate or a key
  }
}

/** The largest public exponent of RSA that Go accepts. With a large one, OpenSSL checks a signature in 6 ms. */
const mostExponent = 2n ** 31n - 1n;

/** True if Go can use the public key for TLS. */
export function hasUsableKey({ keyType, x509 }: Certificate): boolean {
  if (keyType !== "rsa") return keyType !== undefined;
  const { modulusLength = 0, publicExponent = 0n } = x509.publicKey.asymmetricKeyDetails ?? {};
  return modulusLength >= 1024 && modulusLength <= 8192 && publicExponent <= mostExponent;
}

/** Returns a text that says why the certificate is not trusted. */
export function verify(
  leaf: Certificate,
  intermediates: readonly Certificate[],
  options: VerifyOptions,
): Verified | string {
  const fault = faultOf(leaf, [], options.wallMs);
  if (fault !== undefined) return fault;
  const search = new Search(intermediates, options);
  if (options.roots.length === 0) return search.outcome;
  if (options.roots.some(({ x509 }) => x509.raw.equals(leaf.x509.raw))) search.finish([leaf]);
  else search.walk([leaf], leaf);
  return search.outcome;
}

class Search {
  readonly #options: VerifyOptions;
  readonly #intermediates: readonly Certificate[];
  #checks = 0;
  #comparisons = 0;
  outcome: Verified | string = "it is signed by an unknown authority";

  constructor(intermediates: readonly Certificate[], options: VerifyOptions) {
    this.#intermediates = intermediates;
    this.#options = options;
  }

  /** Extends a chain by each certificate that can have issued `last`, its end. */
  walk(chain: readonly Certificate[], last: Certificate): void {
    const { roots, wallMs } = this.#options;
    for (const issuer of [...roots, ...this.#intermediates]) {
      if (!issuer.subject.equals(last.issuer) || chain.some((one) => isSame(one, issuer))) continue;
      this.#checks += 1;
      if (this.#checks > mostSignatureChecks) return;
      const fault = faultOfIssue(last, issuer) ?? faultOf(issuer, chain, wallMs);
      const isRoot = roots.includes(issuer);
      if (fault !== undefined) this.#note(`it is signed by an unknown authority: ${fault}`);
      else if (isRoot) this.finish([...chain, issuer]);
      // Only a trusted CA may be a certificate of version 1, which cannot say that it is a CA.
      else if (issuer.isCa === true) this.walk([...chain, issuer], issuer);
    }
  }

  /** Takes a chain that ends with a trusted CA, unless one of its certificates forbids the purpose or a name. */
  finish(chain: readonly Certificate[]): void {
    this.#comparisons += comparisonsIn(chain);
    if (this.#comparisons > mostComparisons) return this.#note(tooManyNames);
    const fault = faultOfChain(chain, this.#options.purpose);
    if (fault !== undefined) return this.#note(fault);
    const notAfter = Math.min(...chain.map(({ x509 }) => x509.validToDate.getTime()));
    const best = typeof this.outcome === "string" ? 0 : this.outcome.notAfter;
    const [leaf] = chain;
    if (leaf !== undefined) this.outcome = { leaf, notAfter: Math.max(notAfter, best) };
  }

  #note(fault: string): void {
    if (typeof this.outcome === "string") this.outcome = fault;
  }
}

/** Returns what is wrong with one certificate. `below`: the chain from the leaf up to it. */
function faultOf(
  { hasUnknownCritical, x509, maxPathLength = Number.POSITIVE_INFINITY }: Certificate,
  below: readonly Certificate[],
  wallMs: number,
): string | undefined {
  if (hasUnknownCritical) return "it has a critical extension that is not known";
  // Both comparisons are false for a date that cannot be read.
  if (!(x509.validFromDate.getTime() <= wallMs)) return "it is not yet valid";
  if (!(wallMs <= x509.validToDate.getTime())) return "it has expired";
  return below.length - 1 > maxPathLength ? "its chain is too long" : undefined;
}

function faultOfIssue({ signedBy, x509 }: Certificate, issuer: Certificate): string | undefined {
  const isCa = issuer.isCa ?? issuer.version !== 3;
  if (!isCa || !issuer.mayCertify) return "the issuer is no CA";
  if (signedBy === undefined) return "its signature algorithm is unknown or insecure";
  if (signedBy !== issuer.keyType || !hasUsableKey(issuer)) return "the issuer's key cannot have signed it";
  if (!x509.verify(issuer.x509.publicKey)) return "its signature is not the issuer's";
  return undefined;
}

/** As in Go, a certificate may occur twice in a chain if its alternative names differ. */
function isSame(one: Certificate, { subject, publicKey, x509 }: Certificate): boolean {
  const isOfSameKey = one.subject.equals(subject) && one.publicKey.equals(publicKey);
  return isOfSameKey && one.x509.subjectAltName === x509.subjectAltName;
}

function faultOfChain(chain: readonly Certificate[], purpose: string): string | undefined {
  if (!chain.every((one) => permits(one, purpose))) return "its extended key usage does not permit this";
  // Go compares the policies of such a chain. This proxy refuses it.
  if (chain.slice(0, -1).some((one) => one.needsPolicy)) return "its chain has policy constraints";
  const isBad = chain.some(({ altNames }, at) => {
    const above = constraintsOn(chain, at);
    return !altNames.every((name) => above.every((constraints) => isPermitted(name, constraints)));
  });
  return isBad ? "a CA's name constraints do not permit its names" : undefined;
}

/** Returns the constraints of the CAs above a certificate. */
function constraintsOn(chain: readonly Certificate[], at: number): readonly NameConstraints[] {
  return chain.slice(at + 1).flatMap(({ constraints = [] }) => constraints);
}

function comparisonsIn(chain: readonly Certificate[]): number {
  const each = chain.flatMap(({ altNames }, at) =>
    constraintsOn(chain, at).map(
      ({ permitted, excluded }) => altNames.length * (permitted.length + excluded.length),
    ),
  );
  return each.reduce((sum, one) => sum + one, 0);
}

/** True if the certificate may be used for the purpose. */
export function permits({ purposes: permitted }: Certificate, purpose: string): boolean {
  return permitted.length === 0 || permitted.includes(purpose) || permitted.includes(anyPurpose);
}
