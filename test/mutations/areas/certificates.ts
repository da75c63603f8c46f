/** Faults in the verification of certificates: each lets in what kube-apiserver or a Go client refuses, or the reverse. */
import { type Defect, defect } from "../defect.ts";

const clients = "proxy/tls/client-certificates";
const pairs = "proxy/tls/listener-pairs";
const bundles = "x509/trust";
const hostile = "x509/hostile-certificates";

export const certificates: readonly Defect[] = [
  defect(
    "only the first of several CAs with one name is tried",
    {
      file: "x509/verify.ts",
      find: "if (this.#checks > mostSignatureChecks) return;",
      replace: "if (this.#checks > chain.length) return;",
    },
    [clients, "the second CA of three with one name"],
  ),
  defect(
    "a name is enough to be an issuer",
    {
      file: "x509/verify.ts",
      find: "if (!x509.verify(issuer.x509.publicKey))",
      replace: "if (!x509.verify(issuer.x509.publicKey) && false)",
    },
    [clients, "an unknown CA with a known name"],
  ),
  defect(
    "a certificate may be used for everything",
    { file: "x509/verify.ts", find: "permitted.includes(anyPurpose)", replace: "permitted.length > 0" },
    [clients, "extendedKeyUsage server"],
  ),
  defect(
    "an intermediate needs no basicConstraints",
    { file: "x509/verify.ts", find: "else if (issuer.isCa === true) this.walk", replace: "else this.walk" },
    [clients, "an intermediate that is of version 1"],
  ),
  defect(
    "a critical extension that is unknown is passed over",
    { file: "x509/verify.ts", find: "if (hasUnknownCritical)", replace: "if (hasUnknownCritical && false)" },
    [clients, "an unknown critical extension"],
  ),
  defect(
    "a path may be longer than a CA allows",
    {
      file: "x509/verify.ts",
      find: "below.length - 1 > maxPathLength",
      replace: "below.length - 9 > maxPathLength",
    },
    [clients, "below one with a path length of 0"],
  ),
  defect(
    "name constraints are not compared",
    {
      file: "x509/verify.ts",
      find: "isPermitted(name, constraints)",
      replace: "isPermitted(name, constraints) || true",
    },
    [clients, "a CA that permits some names"],
  ),
  defect(
    "OpenSSL verifies clients with the CAs themselves",
    {
      file: "proxy/tls/server-context.ts",
      find: "ca: namesOnly(clientCas)",
      replace: "ca: clientCas.map(({ x509 }) => x509.toString())",
    },
    [clients, "the second CA of three with one name"],
  ),
  defect(
    "every server is trusted",
    {
      file: "x509/trust.ts",
      find: 'if (typeof verified !== "string")',
      replace: "if (verified !== undefined)",
    },
    [bundles, "another root"],
  ),
  defect(
    "only OpenSSL says which server is trusted",
    {
      file: "x509/trust.ts",
      find: 'Reflect.set(handle, "verifyError", () => undefined);',
      replace: "void verified;",
    },
    [bundles, "the old CA of two with one name, which comes last"],
  ),
  defect(
    "a listener takes a certificate that no Go client accepts",
    {
      file: "proxy/tls/serving-pair.ts",
      find: "return fault === undefined ? undefined : bad(",
      replace: "return fault !== '' ? undefined : bad(",
    },
    [pairs, "no alternative names"],
  ),
  defect(
    "a server is trusted for names that Go does not read",
    {
      file: "x509/trust.ts",
      find: "if (hasName(read.altNames, name)) return undefined;",
      replace: "if (checkServerIdentity(name, own) === undefined) return undefined;",
    },
    [bundles, "a certificate of version 1 with a name"],
  ),
  defect(
    "a name that is encoded in parts is compared with no name constraint",
    {
      file: "x509/trust.ts",
      find: 'checkServerIdentity(name, { ...own, subjectaltname: "" })',
      replace: "undefined",
    },
    [bundles, "a name that is encoded in parts"],
  ),
  defect(
    "names are compared with name constraints without a limit",
    {
      file: "x509/verify.ts",
      find: "if (this.#comparisons > mostComparisons)",
      replace: "if (this.#comparisons < 0)",
    },
    [hostile, "50,000 names in a certificate"],
  ),
  defect(
    "a client may send KeyUpdates without a limit",
    { file: "proxy/tls/handshake.ts", find: "limitKeyUpdates(secure);", replace: "" },
    ["attacks/whole/tls", "endless KeyUpdates close the connection"],
  ),
  defect(
    "part of a label may be a wildcard",
    {
      file: "x509/constraints.ts",
      find: 'host.replace(/^[^.]+(?=\\.)/, "*")',
      replace: 'host.replace(/[^.v]+(?=\\.)/, "*")',
    },
    ["proxy/tls/serving-pair", "no part of a label is a wildcard"],
  ),
  defect(
    "a server is trusted for its common name",
    {
      file: "x509/trust.ts",
      find: "if (hasName(read.altNames, name)) return undefined;",
      replace: "if (checkServerIdentity(name, certificate) === undefined) return undefined;",
    },
    [bundles, "for a common name"],
  ),
  defect(
    "a broken certificate in a CA bundle causes an exception",
    {
      file: "x509/verify.ts",
      find: ".map((block) => readPem(block))",
      replace: ".map((block) => readCertificate(new X509Certificate(block)))",
    },
    [hostile, "a CA bundle with a changed byte"],
  ),
  defect(
    "a client's RSA key may have an exponent of any size",
    { file: "x509/verify.ts", find: " && publicExponent <= mostExponent", replace: "" },
    [hostile, "exponents that Go refuses"],
  ),
  defect(
    "a compressed point is a key",
    { file: "x509/certificate.ts", find: 'type === "ec" && bits.value[1] !== 4', replace: "bits === none" },
    [hostile, "a compressed point"],
  ),
  defect(
    "name constraints that are malformed inside constrain nothing",
    {
      file: "x509/constraints.ts",
      find: "(partsOf(found, tag) ?? [none])",
      replace: "(partsOf(found, tag) ?? [])",
    },
    [hostile, "name constraints are malformed inside"],
  ),
  defect(
    "a client whose certificate causes an exception is one without a certificate",
    {
      file: "proxy/tls/handshake.ts",
      find: "return new Error(wordsOf(reason));",
      replace: "return { socket, alpn, host, identity: identityOf(undefined, host.policy) };",
    },
    ["proxy/tls/handshake", "an exception while a client certificate is read"],
  ),
  defect(
    "a signature is not checked",
    { file: "x509/verify.ts", find: "!x509.verify(issuer.x509.publicKey)", replace: "x509.raw.length === 0" },
    [hostile, "none is accepted whose signed bytes changed"],
  ),
  defect(
    "a reload may name any other CA of the backends",
    {
      file: "proxy/cluster/backend-set.ts",
      find: "(mayTest ? CaBundle.loadOther(options) : CaBundle.load(options))",
      replace: "(mayTest ? CaBundle.load(options) : CaBundle.load(options))",
    },
    ["proxy/cluster/backend-set", "a reload that names a CA of another cluster is refused"],
  ),
];
