/** What every TLS socket that we serve on has in common, and the context that a checked pair is served with. */
import { constants } from "node:crypto";
import tls from "node:tls";
import { Failure, wordsOf } from "../../base/failure.ts";
import type { ServingPair } from "./serving-pair.ts";

/** It belongs to the context, so a context must be made with it. `wholeOnly`: no handshake may be cut short. */
export function serverTlsOptions(wholeOnly = false): tls.SecureContextOptions {
  return {
    minVersion: "TLSv1.2",
    // For TLS 1.2 only what RFC 9113 §9.2.2 and its appendix A leave (ECDHE, AEAD): a client that chose another would
    // have to be sent away with INADEQUATE_SECURITY. AES-128 first, as Go's servers and so the apiserver have it.
    ciphers: [
      "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384",
      "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256",
      "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305",
      "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384",
    ].join(":"),
    honorCipherOrder: true,
    // A client's renegotiation costs us a handshake each time; Node alone would allow three in ten minutes (A46).
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION | (wholeOnly ? constants.SSL_OP_NO_TICKET : 0),
    // A resumed session keeps the identity of the first one, whoever comes with its ticket (A47), and the name that it asks
    // for is not told: so where certificates count, or names, there are no tickets, and without this name OpenSSL refuses
    // whatever was resumable before.
    ...(wholeOnly ? {} : { sessionIdContext: "watchkeeper" }),
  };
}

/** `clientCa`: PEM certificates that clients' own must lead to; then its handshakes are whole, as with `wholeOnly`. */
export function serverContext(
  { chain, key }: ServingPair,
  { clientCa, wholeOnly }: { readonly clientCa: string | undefined; readonly wholeOnly: boolean },
): tls.SecureContext | Failure {
  // An intermediate authority may stand in the bundle alone, as with Go's verifier and so at the apiserver.
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
