/**
 * Passes the bytes that were read before TLS began to a TLS socket, in pieces of less than 1 KiB. This saves 12 kB for
 * each client. Node keeps received bytes in a ring of buffers: the first has the length of the first piece, but at least
 * 1 KiB, and when a buffer is full, Node adds one of 16 KiB, which stays until the connection closes. A ClientHello with
 * a post-quantum key is longer than 1 KiB, so in one piece it would fill the first buffer. In several pieces it does
 * not, because OpenSSL consumes each piece before the next one is written.
 *
 * In a Node version with other internals, the bytes stay in the socket's stream, from which Node passes them in one
 * piece.
 */

import type net from "node:net";
import type tls from "node:tls";

/** One byte less than Node's first buffer, so that a piece never fills it. */
const pieceBytes = 1023;

/** Node's internal object of a TLS socket. */
type TlsHandle = { receive(bytes: Buffer): void };

/** Must be called in the turn in which `secure` was created on top of the paused `socket`. */
export function passFirstBytes(socket: net.Socket, secure: tls.TLSSocket): void {
  const handle: unknown = Reflect.get(secure, "_handle");
  if (!isTlsHandle(handle)) return;
  const bytes: unknown = socket.read();
  if (!Buffer.isBuffer(bytes)) return;
  // Node's constructor has scheduled the start of reading for the next tick, so the caller can add its listeners before.
  process.nextTick(() => {
    for (let at = 0; at < bytes.length && !secure.destroyed; at += pieceBytes)
      handle.receive(bytes.subarray(at, at + pieceBytes));
  });
}

function isTlsHandle(handle: unknown): handle is TlsHandle {
  return typeof handle === "object" && handle !== null && "receive" in handle;
}
