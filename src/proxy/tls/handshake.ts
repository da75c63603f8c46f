/**
 * TLS on an accepted socket: selects the host, identifies the client, and negotiates the protocol.
 */
import type net from "node:net";
import tls from "node:tls";
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { type Identity, identityOf } from "../identity/client-identity.ts";
import { peerCertificateOn } from "../identity/peer-certificate.ts";
import { serverTlsOptions } from "./server-context.ts";
import type { Host, Hosts } from "./sni-hosts.ts";

export type Shaken = {
  readonly socket: tls.TLSSocket;
  readonly alpn: "h2" | "http/1.1";
  readonly host: Host;
  readonly identity: Identity;
};

/**
 * Calls `done` once, without a result if the handshake failed; never if the client leaves before its first byte is read.
 */
export function shakeHands(
  socket: net.Socket,
  hosts: Hosts,
  clock: Clock,
  done: (outcome: Shaken | undefined) => void,
): void {
  // Without SNI (RFC 6066 §3: an IP address is none) the callback is not called.
  let host = hosts.default;
  const own = host.context();
  const secure = new tls.TLSSocket(socket, {
    ...serverTlsOptions(),
    isServer: true,
    ...(own === undefined ? {} : { secureContext: own }),
    SNICallback: (name, answer) => {
      host = hosts.find(name);
      const context = host.context();
      // Neither throws nor waits: an exception here would end the process (CVE-2026-21637).
      if (context === undefined) answer(new Error("No good certificate for this name"));
      else answer(null, context);
    },
    ALPNProtocols: ["h2", "http/1.1"],
    // Always requested, so that a certificate can be refused with a clear message where none is accepted.
    requestCert: true,
    rejectUnauthorized: false,
  });
  const stopTimer = clock.after(limits.handshakeMs, () => secure.destroy());
  let isDone = false;
  secure.on("error", () => {
    if (!isDone) done(undefined);
  });
  secure.once("close", () => {
    stopTimer();
    socket.destroy();
  });
  secure.once("secure", () => {
    isDone = true;
    stopTimer();
    const alpn = secure.alpnProtocol === "h2" ? "h2" : "http/1.1";
    done({ socket: secure, alpn, host, identity: identityOf(peerCertificateOn(secure), host.policy) });
  });
}
