/** TLS on an accepted socket: selects the host by SNI, identifies the client, and negotiates the protocol. */
import type { X509Certificate } from "node:crypto";
import type net from "node:net";
import tls from "node:tls";
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { type Identity, identityOf, type PeerCertificate } from "../identity/asserted-identity.ts";
import { passFirstBytes } from "../net/tls-input.ts";
import { serverTlsOptions } from "./server-context.ts";
import type { Host, Hosts } from "./sni-hosts.ts";

export type HandshakeResult = {
  readonly socket: tls.TLSSocket;
  readonly alpn: "h2" | "http/1.1";
  readonly host: Host;
  readonly identity: Identity;
};

/**
 * Calls `done` once, with undefined if the handshake failed. Does not call it if the client leaves before its first
 * byte. `done` must add a listener for the TLS socket's errors. When the TLS socket closes, Node destroys `socket`,
 * too.
 */
export function shakeHands(
  socket: net.Socket,
  hosts: Hosts,
  clock: Clock,
  done: (outcome: HandshakeResult | undefined) => void,
): void {
  // For clients without SNI, such as those that dial an IP address, this remains the default host (RFC 6066 §3).
  let host = hosts.default;
  const own = host.context();
  const bySni: tls.TLSSocketOptions = {
    SNICallback: (name, answer) => {
      host = hosts.find(name);
      const context = host.context();
      // This callback neither throws nor waits, because an exception here would end the process (CVE-2026-21637).
      if (context === undefined) answer(new Error("No good certificate for this name"));
      else answer(null, context);
    },
  };
  const secure = new tls.TLSSocket(socket, {
    isServer: true,
    ...(own === undefined ? serverTlsOptions() : { secureContext: own }),
    // With one certificate for all names, there is no SNI callback, which would interrupt OpenSSL's handshake.
    ...(own === undefined || hosts.hasSeveral ? bySni : {}),
    ALPNProtocols: ["h2", "http/1.1"],
    // Requests a certificate from every client, and accepts any certificate during the handshake. The listener checks the
    // certificate later, because only then it can refuse the client with a clear message.
    requestCert: true,
    rejectUnauthorized: false,
  });
  passFirstBytes(socket, secure);
  // Node has added a listener that would keep memory for nothing: an accepted socket never emits "connect".
  socket.removeAllListeners("connect");
  const stopTimer = clock.after(limits.handshakeMs, () => secure.destroy());
  const failed = (): void => done(undefined);
  secure.on("error", failed);
  secure.on("close", stopTimer);
  secure.once("secure", () => {
    stopTimer();
    // Removed, so that nothing of the handshake stays in memory for as long as the client is connected.
    secure.off("error", failed);
    secure.off("close", stopTimer);
    const alpn = secure.alpnProtocol === "h2" ? "h2" : "http/1.1";
    done({ socket: secure, alpn, host, identity: identityOf(peerCertificateOn(secure), host.policy) });
  });
}

/** Returns the client's certificate after the handshake; undefined: the client presented none. */
export function peerCertificateOn(socket: tls.TLSSocket): PeerCertificate | undefined {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return undefined;
  // A resumed session does not prove who its client is. Listeners that verify certificates let no client resume a
  // session (A47).
  const problem = socket.isSessionReused() ? "the TLS session was resumed" : problemOf(socket);
  return {
    der: certificate.raw,
    fingerprint: certificate.fingerprint256.replaceAll(":", "").toLowerCase(),
    notAfter: firstEnd(certificate),
    problem,
  };
}

/**
 * Returns why OpenSSL rejects the client's chain, including its purpose and dates; undefined if OpenSSL accepts it.
 * Reads the same internal result as Node, because Node sets the public `authorized` only on sockets that a tls.Server
 * accepted. Any result but a clear success is a failure.
 */
function problemOf(socket: tls.TLSSocket): string | undefined {
  const handle: unknown = Reflect.get(socket, "_handle");
  if (typeof handle !== "object" || handle === null) return "it could not be verified";
  const verifyError: unknown = Reflect.get(handle, "verifyError");
  if (typeof verifyError !== "function") return "it could not be verified";
  const error: unknown = Reflect.apply(verifyError, handle, []);
  if (error === null || error === undefined) return undefined;
  // Cuts Node's message at the semicolon: what follows is advice for programmers of Node servers.
  return error instanceof Error ? error.message.replace(/;.*/s, "") : "it could not be verified";
}

/**
 * Returns the earliest expiry of the certificates that the client has presented, because an apiserver checks the whole
 * chain with each request.
 */
function firstEnd(certificate: X509Certificate): number {
  let end = Number.POSITIVE_INFINITY;
  let last: X509Certificate | undefined = certificate;
  // Reads at most ten certificates, although OpenSSL accepts a chain of a hundred.
  for (let depth = 0; last !== undefined && depth < 10; depth += 1) {
    end = Math.min(end, last.validToDate.getTime());
    const issuer: X509Certificate | undefined = last.issuerCertificate;
    last = issuer === last ? undefined : issuer;
  }
  return end;
}
