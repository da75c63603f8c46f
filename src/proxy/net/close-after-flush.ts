/** How a socket ends when its last words matter and nothing more is wanted from its peer. */
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";

/**
 * Reads on and throws away until the peer has had time to read what was written: closing with octets unread would
 * reset the connection under it (RFC 9112 §9.6). A peer that reads slowly is waited for.
 */
export function closeAfterFlush(socket: Socket, clock: Clock): void {
  if (socket.destroyed) return;
  socket.resume();
  const stop = clock.after(limits.h1LingerMs, () => {
    if (socket.writableFinished) socket.destroy();
    else socket.once("finish", () => socket.destroy());
  });
  socket.once("close", stop);
}
