/** How a socket ends when its last octets matter and nothing more is needed from its peer. */
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";

/**
 * Reads on and discards until the peer has had time to read what was written: closing with unread octets would reset the
 * connection before that (RFC 9112 §9.6). A peer that reads slowly gets the time it needs.
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
