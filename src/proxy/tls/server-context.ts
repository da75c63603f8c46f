/** The TLS options of every serving socket, and the TLS context of a certificate and key that were checked. */
import { constants } from "node:crypto";
import tls from "node:tls";
import { Failure, wordsOf } from "../../base/failure.ts";
import type { Certificate } from "../../x509/certificate.ts";
import { namesOnly } from "../../x509/trust.ts";
import type { ServingPair } from "./serving-pair.ts";

/** Returns the options with which a TLS context must be created. `wholeOnly`: true if no TLS session may be resumed. */
export function serverTlsOptions(wholeOnly = false): tls.SecureContextOptions {
  return {
    minVersion: "TLSv1.2",
    // For TLS 1.2, only suites with ECDHE and AEAD: RFC 9113 §9.2.2 and its appendix A prohibit all others, so the
    // proxy would have to end such HTTP/2 connections with INADEQUATE_SECURITY. AES-128 comes first, as in the
    // apiserver (Go).
    ciphers: [
      "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384",
      "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256",
      "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305",
      "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384",
    ].join(":"),
    honorCipherOrder: true,
    // Renegotiation is off, because each renegotiation costs as much as a handshake. By default, Node would allow a
    // client three renegotiations in ten minutes (A46).
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION | (wholeOnly ? constants.SSL_OP_NO_TICKET : 0),
    // A resumed TLS session keeps the client identity of the original session, whichever client presents the session
    // ticket (A47). A resumed session also has no SNI. So no tickets are issued where client certificates or server
    // names matter. Without a session id context, OpenSSL also refuses tickets that were issued earlier.
    ...(wholeOnly ? {} : { sessionIdContext: "watchkeeper" }),
  };
}

/**
 * Returns the TLS context of a certificate and key. With `clientCas`, the context tells clients the names of these CAs
 * and resumes no session. The listener itself verifies the clients' certificates (x509/verify.ts).
 */
export function serverContext(
  { chain, key }: ServingPair,
  { clientCas, wholeOnly }: { readonly clientCas: readonly Certificate[]; readonly wholeOnly: boolean },
): tls.SecureContext | Failure {
  const asking = clientCas.length === 0 ? {} : { ca: namesOnly(clientCas) };
  try {
    return tls.createSecureContext({
      ...serverTlsOptions(wholeOnly || clientCas.length > 0),
      ...asking,
      cert: chain,
      key,
    });
  } catch (reason) {
    // OpenSSL may refuse a certificate and key that passed the proxy's checks. OpenSSL has limits of its own, such as a
    // minimum size of RSA keys.
    return new Failure("bad-file", "proxy", wordsOf(reason), reason);
  }
}
