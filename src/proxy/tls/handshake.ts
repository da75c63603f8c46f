/**
 * TLS on an accepted socket: selects the host, identifies the client, and negotiates the protocol.
 */
import type { X509Certificate } from "node:crypto";
import type net from "node:net";
import tls from "node:tls";
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { type Identity, identityOf, type PeerCertificate } from "../identity/client-identity.ts";
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

/** What the socket has of its client after the handshake. Undefined: the client has presented no certificate. */
export function peerCertificateOn(socket: tls.TLSSocket): PeerCertificate | undefined {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return undefined;
  // No listener that requests certificates resumes sessions. Should one ever do so, its client is not identified (A47).
  const problem = socket.isSessionReused() ? "the TLS session was resumed" : problemOf(socket);
  return {
    der: certificate.raw,
    fingerprint: certificate.fingerprint256.replaceAll(":", "").toLowerCase(),
    notAfter: firstEnd(certificate),
    problem,
  };
}

/**
 * OpenSSL's verdict on the chain (purpose and dates included), read the way Node itself reads it. Its public form,
 * `authorized`, is set only on sockets that a tls.Server of Node's accepted. Anything but a clear success is a failure.
 */
function problemOf(socket: tls.TLSSocket): string | undefined {
  const handle: unknown = Reflect.get(socket, "_handle");
  if (typeof handle !== "object" || handle === null) return "it could not be verified";
  const verifyError: unknown = Reflect.get(handle, "verifyError");
  if (typeof verifyError !== "function") return "it could not be verified";
  const error: unknown = Reflect.apply(verifyError, handle, []);
  if (error === null || error === undefined) return undefined;
  // Behind the semicolon Node gives advice, which is not for clients.
  return error instanceof Error ? error.message.replace(/;.*/s, "") : "it could not be verified";
}

/**
 * When the first certificate of its chain expires, as far as known: the apiserver checks the whole chain with each
 * request.
 */
function firstEnd(certificate: X509Certificate): number {
  let end = Number.POSITIVE_INFINITY;
  let last: X509Certificate | undefined = certificate;
  // A chain of OpenSSL's has at most a hundred; a CA may have signed itself.
  for (let depth = 0; last !== undefined && depth < 10; depth += 1) {
    end = Math.min(end, last.validToDate.getTime());
    const issuer: X509Certificate | undefined = last.issuerCertificate;
    last = issuer === last ? undefined : issuer;
  }
  return end;
}
