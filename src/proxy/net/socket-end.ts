/** How a socket ends: in order, broken off, or without parsing what is left on it. */
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";

/** How long a rejected client may take to read the reason. */
export const flushGraceMs = 1000;

/**
 * For a socket whose last bytes are written. Reads on and discards until the peer has had time to read them: closing with
 * unread bytes would reset the connection before that (RFC 9112 §9.6). A peer that reads slowly gets the time it needs.
 */
export function closeAfterFlush(socket: Socket, clock: Clock): void {
  if (socket.destroyed) return;
  socket.resume();
  const stop = clock.after(flushGraceMs, () => {
    if (socket.writableFinished) socket.destroy();
    else socket.once("finish", () => socket.destroy());
  });
  socket.once("close", stop);
}

/**
 * For a socket whose data is incomplete. Destroys it so that its peer cannot take the end for an orderly one. A plain FIN
 * would look orderly where only the end of the connection ends a body. TLS has its own mark, close_notify, which destroy()
 * does not send.
 */
export function abort(socket: Socket): void {
  if ("encrypted" in socket || socket.remoteFamily === undefined) socket.destroy();
  else socket.resetAndDestroy();
}

/**
 * Stops node:http from parsing what this socket has sent. Its parser delivers every head of one read, up to 64 KiB of
 * them, even for a destroyed socket, and the 4 KiB of objects for each stay until the end of the tick. A parser has no
 * public way to stop. Answering a head as if another protocol began behind it, as for an Upgrade, makes it read no further
 * (_http_common.js, parserOnHeadersComplete).
 */
export function stopParsing(socket: Socket): void {
  const parser: unknown = Reflect.get(socket, "parser");
  if (typeof parser === "object" && parser !== null) Reflect.set(parser, "onIncoming", () => 2);
}
