/** The API's port over TLS, with whatever certificate is good when somebody connects. */
import type { RequestListener, Server, ServerOptions } from "node:http";
import { createServer } from "node:https";
import type { Socket } from "node:net";
import type { SecureContextOptions } from "node:tls";
import { limits } from "../../base/limits.ts";
import type { ServingCertificate } from "../../proxy/tls/certificates.ts";
import type { ServingPair } from "../../proxy/tls/serving-pair.ts";

export type ApiTls = {
  readonly certificate: Pick<ServingCertificate, "isGood" | "pair">;
  /** As every TLS socket of ours has them. */
  readonly options: SecureContextOptions;
};

/** Node makes the context of a connection in its own listener, so that it is set just before. */
export function secureServer(
  settings: ServerOptions,
  { certificate, options }: ApiTls,
  listener: RequestListener,
): Server {
  const server = createServer({ ...settings, handshakeTimeout: limits.handshakeMs }, listener);
  let shown: ServingPair | undefined;
  server.prependListener("connection", (socket: Socket) => {
    if (!certificate.isGood()) {
      socket.destroy();
      return;
    }
    const pair = certificate.pair();
    if (pair === shown) return;
    // It was proven good when it was loaded: Node itself would take what no handshake can use: after that every handshake would fail.
    server.setSecureContext({ ...options, cert: pair.chain, key: pair.key });
    shown = pair;
  });
  return server;
}
