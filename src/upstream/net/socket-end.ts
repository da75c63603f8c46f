/**
 * Three ways to end a socket. `closeAfterFlush` closes it after the peer has had time to read the last bytes. `abort`
 * makes the peer see that the response is incomplete. `stopParsing` keeps node:http from parsing what the socket has
 * already received.
 */
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";

/** Milliseconds that a refused client gets to read the reason. */
export const flushGraceMs = 1000;

/**
 * Closes a socket whose last bytes are written, after the peer has had time to read them. Meanwhile, reads and discards
 * the peer's bytes, because closing with unread bytes would reset the connection (RFC 9112 §9.6).
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
 * Destroys a socket in the middle of a response so that the peer sees the response as truncated. A plain TCP socket is
 * reset: if a response ends where its connection ends, a FIN would make it look complete. On TLS, destroy() is enough,
 * because it sends no close_notify.
 */
export function abort(socket: Socket): void {
  if ("encrypted" in socket || socket.remoteFamily === undefined) socket.destroy();
  else socket.resetAndDestroy();
}

/**
 * Stops node:http from parsing what this socket has received. The parser delivers all heads of one read, up to 64 KiB
 * of them, even for a destroyed socket; for each head, 4 KiB of objects stay until the end of the tick. Node has no
 * public way to stop a parser. If its `onIncoming` returns 2, another protocol begins after the head, as for an
 * Upgrade, so the parser reads no further (_http_common.js, parserOnHeadersComplete).
 */
export function stopParsing(socket: Socket): void {
  const parser: unknown = Reflect.get(socket, "parser");
  if (typeof parser === "object" && parser !== null) Reflect.set(parser, "onIncoming", () => 2);
}
