/** TLS on an accepted socket: selects the host by SNI, identifies the client, and negotiates the protocol. */
import type { X509Certificate } from "node:crypto";
import type net from "node:net";
import tls from "node:tls";
import type { Clock } from "../../base/clock.ts";
import { wordsOf } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import {
  type Identity,
  identityOf,
  type PeerCertificate,
} from "../../upstream/identity/asserted-identity.ts";
import { limitKeyUpdates } from "../../upstream/net/key-updates.ts";
import { passFirstBytes } from "../../upstream/net/tls-input.ts";
import type { Certificate } from "../../x509/certificate.ts";
import { purposes, verifyPresented } from "../../x509/verify.ts";
import { serverTlsOptions } from "./server-context.ts";
import type { Host, Hosts } from "./sni-hosts.ts";

export type HandshakeResult = {
  readonly socket: tls.TLSSocket;
  readonly alpn: "h2" | "http/1.1";
  readonly host: Host;
  readonly identity: Identity;
};

/**
 * Calls `done` once, with the reason if the handshake failed. Does not call it if the client leaves before its first
 * byte. `done` must add a listener for the TLS socket's errors. When the TLS socket closes, Node destroys `socket`,
 * too.
 */
export function shakeHands(
  socket: net.Socket,
  hosts: Hosts,
  clock: Clock,
  done: (outcome: HandshakeResult | Error) => void,
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
  secure.on("error", done);
  secure.on("close", stopTimer);
  secure.once("secure", () => {
    stopTimer();
    // Removed, so that nothing of the handshake stays in memory for as long as the client is connected.
    secure.off("error", done);
    secure.off("close", stopTimer);
    limitKeyUpdates(secure);
    done(outcomeOf(secure, host, clock.wall()));
  });
}

/** Returns an Error, and destroys the socket, if the client's certificate causes an exception. */
function outcomeOf(socket: tls.TLSSocket, host: Host, wallMs: number): HandshakeResult | Error {
  const alpn = socket.alpnProtocol === "h2" ? "h2" : "http/1.1";
  try {
    const shown = peerCertificateOn(socket, host.clientCas(), wallMs);
    return { socket, alpn, host, identity: identityOf(shown, host.policy) };
  } catch (reason) {
    socket.destroy();
    return new Error(wordsOf(reason));
  }
}

/**
 * Returns the client's certificate after the handshake, verified against these CAs; undefined: the client presented
 * none. OpenSSL's own result is ignored (x509/verify.ts).
 */
export function peerCertificateOn(
  socket: tls.TLSSocket,
  roots: readonly Certificate[],
  wallMs: number,
): PeerCertificate | undefined {
  const first = socket.getPeerX509Certificate();
  if (first === undefined) return undefined;
  const options = { roots, purpose: purposes.client, wallMs };
  // A resumed session does not prove who its client is. Listeners that verify certificates let no client resume a
  // session (A47).
  const problem = socket.isSessionReused()
    ? "the TLS session was resumed"
    : verifyPresented(presentedFrom(first), options);
  if (typeof problem === "string") return { attributes: [], fingerprint: "", notAfter: 0, problem };
  const { leaf, notAfter } = problem;
  const fingerprint = leaf.x509.fingerprint256.replaceAll(":", "").toLowerCase();
  return { attributes: leaf.attributes, fingerprint, notAfter, problem: undefined };
}

function* presentedFrom(first: X509Certificate): Generator<X509Certificate> {
  // `issuerCertificate` is the next certificate that the client sent, even if it is not the issuer's.
  for (let next: X509Certificate | undefined = first; next !== undefined; next = next.issuerCertificate)
    yield next;
}
