/** Serves an admin port over TLS. Each new connection gets the certificate that is in use at that moment. */
import type { RequestListener, Server, ServerOptions } from "node:http";
import { createServer } from "node:https";
import type { Socket } from "node:net";
import type { SecureContextOptions, TLSSocket } from "node:tls";
import { limits } from "../../../base/limits.ts";
import type { ServingPair } from "../../../proxy/tls/serving-pair.ts";
import { limitKeyUpdates } from "../../../upstream/net/key-updates.ts";

export type ApiTls = {
  readonly certificate: { readonly current: { readonly pair: ServingPair } | undefined };
  /** TLS options that all server sockets of the proxy have in common. */
  readonly options: SecureContextOptions;
};

/**
 * Returns an HTTPS server. For each connection, it sets the certificate before Node's own "connection" listener creates
 * the TLS context.
 */
export function secureServer(
  settings: ServerOptions,
  { certificate, options }: ApiTls,
  listener: RequestListener,
): Server {
  const server = createServer({ ...settings, handshakeTimeout: limits.handshakeMs }, listener);
  server.on("secureConnection", (socket: TLSSocket) => limitKeyUpdates(socket));
  let used: ServingPair | undefined;
  server.prependListener("connection", (socket: Socket) => {
    const pair = certificate.current?.pair;
    if (pair === undefined) {
      socket.destroy();
      return;
    }
    if (pair === used) return;
    // This call is safe, because the pair was checked when it was loaded. Node would accept an unusable pair, and then
    // fail every handshake.
    server.setSecureContext({ ...options, cert: pair.chain, key: pair.key });
    used = pair;
  });
  return server;
}
