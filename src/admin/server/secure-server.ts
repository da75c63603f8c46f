/** The API's port over TLS, with the certificate that is current when a client connects. */
import type { RequestListener, Server, ServerOptions } from "node:http";
import { createServer } from "node:https";
import type { Socket } from "node:net";
import type { SecureContextOptions } from "node:tls";
import { limits } from "../../base/limits.ts";
import type { ServingPair } from "../../proxy/tls/serving-pair.ts";

export type ApiTls = {
  readonly certificate: { readonly current: { readonly pair: ServingPair } | undefined };
  /** Common options of the proxy's TLS sockets. */
  readonly options: SecureContextOptions;
};

/** Node creates a connection's context in its own listener, so the certificate is set just before. */
export function secureServer(
  settings: ServerOptions,
  { certificate, options }: ApiTls,
  listener: RequestListener,
): Server {
  const server = createServer({ ...settings, handshakeTimeout: limits.handshakeMs }, listener);
  let shown: ServingPair | undefined;
  server.prependListener("connection", (socket: Socket) => {
    const pair = certificate.current?.pair;
    if (pair === undefined) {
      socket.destroy();
      return;
    }
    if (pair === shown) return;
    // The pair was verified when it was loaded: Node would accept an unusable pair, and then fail every handshake.
    server.setSecureContext({ ...options, cert: pair.chain, key: pair.key });
    shown = pair;
  });
  return server;
}
