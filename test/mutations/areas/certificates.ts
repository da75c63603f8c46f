/** Faults in the verification of certificates: each lets in what kube-apiserver or a Go client refuses, or the reverse. */
import { type Defect, defect } from "../defect.ts";

const clients = "proxy/tls/client-certificates";
const pairs = "proxy/tls/listener-pairs";
const bundles = "x509/trust";

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
      find: 'if (socket.isSessionReused() || typeof verifyPresented(presentedOn(socket), options) === "string") return;',
      replace: "",
    },
    [bundles, "another root"],
  ),
  defect(
    "only OpenSSL says which server is trusted",
    { file: "x509/trust.ts", find: 'Reflect.set(handle, "verifyError", () => undefined);', replace: "" },
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
];
