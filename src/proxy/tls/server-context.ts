/** The options of every serving TLS socket, and the context for a checked pair. */
import { constants } from "node:crypto";
import tls from "node:tls";
import { Failure, wordsOf } from "../../base/failure.ts";
import type { ServingPair } from "./serving-pair.ts";

/** The options belong to the context, so it must be created with them. `wholeOnly`: no session may be resumed. */
export function serverTlsOptions(wholeOnly = false): tls.SecureContextOptions {
  return {
    minVersion: "TLSv1.2",
    // For TLS 1.2 only what RFC 9113 §9.2.2 and its appendix A leave (ECDHE, AEAD): a client that chose another would
    // have to be rejected with INADEQUATE_SECURITY. AES-128 first, as in Go's servers and so in the apiserver.
    ciphers: [
      "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384",
      "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256",
      "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305",
      "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384",
    ].join(":"),
    honorCipherOrder: true,
    // Each renegotiation by a client costs a handshake; Node alone would allow three in ten minutes (A46).
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION | (wholeOnly ? constants.SSL_OP_NO_TICKET : 0),
    // A resumed session keeps the identity of the first one, whichever client presents its ticket (A47), and its SNI is
    // not available. So there are no tickets where certificates or names matter, and without this context id OpenSSL
    // refuses older tickets.
    ...(wholeOnly ? {} : { sessionIdContext: "watchkeeper" }),
  };
}

/** `clientCa`: PEM certificates that client certificates must lead to; then no session is resumed, as with `wholeOnly`. */
export function serverContext(
  { chain, key }: ServingPair,
  { clientCa, wholeOnly }: { readonly clientCa: string | undefined; readonly wholeOnly: boolean },
): tls.SecureContext | Failure {
  // The bundle may contain only an intermediate CA, as with Go's verifier and so at the apiserver.
  const asking = clientCa === undefined ? {} : { ca: clientCa, allowPartialTrustChain: true };
  try {
    return tls.createSecureContext({
      ...serverTlsOptions(wholeOnly || clientCa !== undefined),
      ...asking,
      cert: chain,
      key,
    });
  } catch (reason) {
    // OpenSSL's own limits, such as an RSA key of 512 bits.
    return new Failure("bad-file", "proxy", wordsOf(reason), reason);
  }
}
