/** The CA and the name with which a backend's certificate is verified. */
export type Trusted = {
  readonly serverName: string;
  /** The CA file, and whether the configuration sets tls.serverName. If undefined, messages name no file. */
  readonly source?: { readonly caFile: string; readonly isNamed: boolean } | undefined;
};

/** OpenSSL's error codes for a chain that leads to none of the CAs. */
const unsigned: readonly string[] = [
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "CERT_SIGNATURE_FAILURE",
];

/** The alert of a server that has no protocol of the client's ALPN list (RFC 7301 §3.2), in OpenSSL's words. */
const noProtocolInCommon = "tlsv1 alert no application protocol";

export const withoutHttp2 =
  "it serves no HTTP/2 (kube-apiserver --disable-http2-serving), so only a listener of mode Passthrough can reach it";

/**
 * Maximum length to which a certificate's names are cut in a message. A hostile backend can put any text into its
 * certificate.
 */
const mostChars = 160;

/**
 * Replaces Node's message about an untrusted certificate by one that names the CA file of the configuration. Leaves
 * other errors as they are.
 */
export function reword(reason: Error, { source }: Trusted): void {
  const code = "code" in reason ? String(reason.code) : "";
  if (unsigned.includes(code) && source !== undefined)
    reason.message = `its certificate is not signed by tls.caFile ${source.caFile}`;
  // Cuts Node's message at the semicolon, because what follows is advice about Node's command line.
  else if (reason.message.includes(noProtocolInCommon)) {
    reason.message = withoutHttp2;
    // With OpenSSL's own fields, the failure would have OpenSSL's words.
    Reflect.deleteProperty(reason, "library");
  } else reason.message = reason.message.replace(/; if the root CA is installed locally.*$/s, "");
}

/**
 * Changes the message of Node's error about a wrong name in a certificate, and returns the error; undefined: the name
 * is right.
 */
export function wrongName(
  reason: Error | undefined,
  { serverName, source }: Trusted,
  { subjectaltname = "" }: { readonly subjectaltname?: string },
): Error | undefined {
  if (reason === undefined) return undefined;
  const names =
    subjectaltname.length > mostChars ? `${subjectaltname.slice(0, mostChars)}...` : subjectaltname;
  const setting = source?.isNamed === true ? "tls.serverName" : "the host of its url";
  const advice = source?.isNamed === false ? "; tls.serverName may ask for another name" : "";
  reason.message = `its certificate is not for "${serverName}" (${setting}), but for ${names || "no name"}${advice}`;
  return reason;
}
