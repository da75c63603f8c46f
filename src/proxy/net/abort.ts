/** How a socket ends when the data written to it is incomplete. */
import type { Socket } from "node:net";

/**
 * Destroys a socket so that its peer cannot take the end for an orderly one. A plain FIN would look orderly where only
 * the end of the connection ends a body. TLS has its own mark, close_notify, which destroy() does not send.
 */
export function abort(socket: Socket): void {
  if ("encrypted" in socket || socket.remoteFamily === undefined) socket.destroy();
  else socket.resetAndDestroy();
}
