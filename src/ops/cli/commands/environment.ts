/** Node options that weaken TLS or HTTP in the whole process, with their effect. */
const unsafeOptions = [
  [/^--tls-min-v1\.[01]$/, "allows TLS versions that are broken"],
  [/^--tls-keylog(=|$)/, "writes the keys of all TLS connections to a file"],
  [/^--insecure-http-parser$/, "accepts malformed HTTP"],
  [/^--security-revert(=|$)/, "undoes a security fix of Node"],
] as const;

/**
 * Returns why the proxy must not start in this environment; undefined: it may. Each TLS client of the proxy states
 * explicitly that it verifies its server. Variables that only add to Node's default CAs or replace them
 * (NODE_EXTRA_CA_CERTS, SSL_CERT_FILE with --use-openssl-ca) are permitted, because backends and replicas are verified
 * against the configured CAs alone. Node does not read SSLKEYLOGFILE.
 */
export function unsafeEnvironment(env: NodeJS.ProcessEnv, execArgv: readonly string[]): string | undefined {
  if (env["NODE_TLS_REJECT_UNAUTHORIZED"] === "0")
    return "NODE_TLS_REJECT_UNAUTHORIZED=0 turns off the verification of TLS servers in Node: unset it. A CA of your own belongs into clusters[].tls.caFile";
  for (const word of [...(env["NODE_OPTIONS"] ?? "").split(/\s+/), ...execArgv]) {
    // As Node does, takes an underscore for a hyphen.
    const option = word.replaceAll(/["']/g, "").replaceAll("_", "-");
    const effect = unsafeOptions.find(([pattern]) => pattern.test(option))?.[1];
    if (effect !== undefined) return `The Node option ${word} ${effect}: remove it`;
  }
  return undefined;
}
