/** The last proof of a serving certificate: a real TLS handshake with it, between two ends of a pipe in memory. */
import { duplexPair } from "node:stream";
import tls from "node:tls";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";

/** Undefined when a client got through and saw the certificate with this SHA-256 fingerprint. */
export function tryHandshake(
  context: tls.SecureContext,
  fingerprint: string,
  clock: Clock,
): Promise<Failure | undefined> {
  const [near, far] = duplexPair();
  const server = new tls.TLSSocket(near, { isServer: true, secureContext: context });
  // Whom clients trust is their affair; here the question is only whether the two ends can agree.
  const client = tls.connect({ socket: far, rejectUnauthorized: false });
  return new Promise((resolve) => {
    const end = (failure?: Failure): void => {
      cancel();
      client.destroy();
      server.destroy();
      resolve(failure);
    };
    const fail = (reason: Error): void => end(new Failure("bad-file", "proxy", reason.message, reason));
    const cancel = clock.after(limits.handshakeMs, () => fail(new Error("the handshake does not end")));
    // They stay: a socket without a listener for "error" would take the process down with it.
    server.on("error", fail);
    client.on("error", fail);
    client.once("secureConnect", () => {
      if (client.getPeerX509Certificate()?.fingerprint256 === fingerprint) end();
      else fail(new Error("the handshake shows another certificate"));
    });
  });
}
