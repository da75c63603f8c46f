/** Bounds the KeyUpdate messages of a TLS 1.3 peer (RFC 8446 §4.6.3). */
import type { TLSSocket } from "node:tls";

/**
 * Maximum number of KeyUpdates on one connection. Java sends one for each 137 GB of data, other clients fewer. Each has
 * 27 bytes and takes 13 µs, so without a limit a client could occupy the process with 2 MB/s.
 */
export const keyUpdatesMost = 64;

/** Destroys a socket whose peer changes its keys too often. Must be called after the handshake. */
export function limitKeyUpdates(socket: TLSSocket): void {
  let count = 0;
  // Node has no event for a KeyUpdate, but reports each new secret. The peer's and the proxy's own change in turn.
  socket.on("keylog", () => {
    count += 1;
    if (count > 2 * keyUpdatesMost) socket.destroy(new Error("The peer changes its TLS keys too often"));
  });
}
