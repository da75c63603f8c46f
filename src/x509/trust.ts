/** The TLS options with which clients and servers of this process trust what kube-apiserver and its clients trust. */
import { constants, X509Certificate } from "node:crypto";
import type { Socket } from "node:net";
import {
  checkServerIdentity,
  type DetailedPeerCertificate,
  type PeerCertificate,
  type TLSSocket,
} from "node:tls";
import { wallClock } from "../base/clock.ts";
import { type Certificate, readCertificate } from "./certificate.ts";
import { hasName } from "./constraints.ts";
import { encode, tags } from "./der.ts";
import { purposes, rootsIn, verifyPresented } from "./verify.ts";

/** The options of every TLS client in this process. */
export const clientTls = {
  minVersion: "TLSv1.2",
  // Without this, the environment variable NODE_TLS_REJECT_UNAUTHORIZED=0 would turn verification off.
  rejectUnauthorized: true,
  // A CA bundle may contain an intermediate CA without its root. Go's verifier accepts that, too.
  allowPartialTrustChain: true,
  // A server that renegotiates could present another certificate, whose name Node would not compare again.
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  checkServerIdentity: checkServerName,
} as const;

/**
 * Returns an Error if Go's verifier does not find the server's name in the certificate. Node also finds it in a common
 * name, in extensions of a certificate of version 1 and behind part of a wildcard; name constraints limit none of them.
 */
export function checkServerName(name: string, certificate: PeerCertificate): Error | undefined {
  const own = { ...certificate, subject: { ...certificate.subject, CN: "" } };
  const read = readCertificate(new X509Certificate(certificate.raw));
  if (typeof read === "string") return checkServerIdentity(name, own);
  if (hasName(read.altNames, name)) return undefined;
  return checkServerIdentity(name, own) ?? checkServerIdentity(name, { ...own, subjectaltname: "" });
}

/**
 * Lets a client socket also trust a server that OpenSSL refuses and Go trusts, such as one whose CA is the second of
 * its name in the bundle. Node compares the server's name afterwards, as always. Replaces the internal result that Node
 * reads. If Node no longer reads this result, OpenSSL's decision stands.
 */
export function trustAsGo(socket: Socket, ca: string | undefined): void {
  if (ca === undefined || !isSecure(socket)) return;
  socket.prependOnceListener("secure", () => {
    const handle: unknown = Reflect.get(socket, "_handle");
    if (typeof handle !== "object" || handle === null || !isRefused(handle)) return;
    const options = { roots: rootsIn(ca), purpose: purposes.server, wallMs: wallClock.wall() };
    const verified = socket.isSessionReused() ? "" : verifyPresented(presentedOn(socket), options);
    if (typeof verified !== "string") Reflect.set(handle, "verifyError", () => undefined);
  });
}

/**
 * Returns the server's certificate and its issuers. Uses the older of two functions, because `getPeerX509Certificate`
 * takes the certificates away from Node's own check of the server's name.
 */
function* presentedOn(socket: TLSSocket): Generator<X509Certificate> {
  let next: Partial<DetailedPeerCertificate> | undefined = socket.getPeerCertificate(true);
  // The last certificate is its own issuer, or has none. The verifier stops at its limit.
  for (; next?.raw !== undefined; next = next.issuerCertificate) yield new X509Certificate(next.raw);
}

function isSecure(socket: Socket): socket is TLSSocket {
  return "getPeerX509Certificate" in socket;
}

function isRefused(handle: object): boolean {
  const verifyError: unknown = Reflect.get(handle, "verifyError");
  return typeof verifyError === "function" && Reflect.apply(verifyError, handle, []) instanceof Error;
}

/** An X25519 key, which signs nothing. */
const noKey = Buffer.concat([Buffer.from("302a300506032b656e032100", "hex"), Buffer.alloc(32, 9)]);
const ed25519 = Buffer.from("300506032b6570", "hex");
const always = encode(
  tags.sequence,
  encode(0x17, Buffer.from("700101000000Z")),
  encode(0x17, Buffer.from("491231235959Z")),
);

/**
 * Returns PEM certificates that have the names of these CAs, but keys that sign nothing. As the CAs of a TLS server,
 * they make OpenSSL tell clients the right names (RFC 8446 §4.2.4), so that a client knows which certificate to present.
 * They keep OpenSSL from verifying signatures: one that is not by the first CA of its name would end the handshake of a
 * client with an RSA certificate, because OpenSSL leaves that error in a queue that Node reads later.
 */
export function namesOnly(roots: readonly Certificate[]): string {
  const names = new Map(roots.map(({ subject }) => [subject.toString("hex"), subject]));
  return Array.from(names.values(), (name) => {
    const [version, serial] = [
      encode(0xa0, encode(tags.integer, Buffer.of(2))),
      encode(tags.integer, Buffer.of(1)),
    ];
    const signed = encode(tags.sequence, version, serial, ed25519, name, always, name, noKey);
    const der = encode(tags.sequence, signed, ed25519, encode(tags.bits, Buffer.alloc(65)));
    return `-----BEGIN CERTIFICATE-----\n${der.toString("base64").replace(/.{64}/g, "$&\n")}\n-----END CERTIFICATE-----\n`;
  }).join("");
}
