/** What the proxy's TLS socket knows of its client after the handshake. */
import type { X509Certificate } from "node:crypto";
import type tls from "node:tls";
import type { PeerCertificate } from "./client-identity.ts";

/** Undefined: the client has presented no certificate. */
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
