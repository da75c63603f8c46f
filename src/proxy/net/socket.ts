/**
 * Joins a TCP or TLS socket to the session that reads it. The rest of the request path knows only `Wire`, so that the
 * simulation can replace the socket. An exception in a session ends that session, never the process (D10).
 */
import type net from "node:net";
import { wallClock } from "../../base/clock.ts";
import { type Failure, failureFrom, type Origin } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import type { Journal } from "../../events/journal.ts";
import { readInto } from "./read-into.ts";
import type { Wire, WireOwner } from "./wire.ts";

/**
 * While a client has left more than this many bytes of responses unread, the proxy does not read its requests. Flow
 * control keeps DATA to half of this, so only response heads can exceed it (CVE-2019-9517).
 */
export const unreadBytes = 2 * 1024 * 1024;
/** Ms between checks of a closing socket, which is destroyed when the peer has read nothing for `endLooks` checks. */
export const endLookMs = 1000;
const endLooks = 5;

export type Keepalive = { readonly idleMs: number; readonly intervalMs: number; readonly count: number };

/** The kernel's keepalive is only a fallback, because the kernel sends no probe while a byte is unacknowledged (F1). */
export function setKeepalive(socket: net.Socket, keepalive: Keepalive): void {
  socket.setNoDelay(true);
  socket.setKeepAlive(true, keepalive.idleMs, keepalive.intervalMs, keepalive.count);
}

/** `origin`: which side is blamed for a failure. */
export function wireOf(
  socket: net.Socket,
  owner: WireOwner,
  parts: { journal: Journal; origin: Origin },
): Wire {
  let failure: Failure | undefined;
  const guarded = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      failure ??= failureFrom(error, "proxy");
      parts.journal.write({ kind: "internal.error", scope: "session", message: failure.message });
      socket.destroy();
    }
  };
  const receive = (chunk: Buffer): void => guarded(() => owner.receive(chunk));
  readInto(socket, receive);
  socket.on("data", receive);
  socket.on("drain", () => guarded(() => owner.drained()));
  socket.on("error", (error) => {
    failure ??= failureFrom(error, parts.origin);
  });
  // The peer's FIN ends the session in both directions. Its owner is notified at once: a peer that does not read the
  // rest would keep the session's streams for seconds (D17).
  socket.on("end", () => {
    guarded(() => owner.closed(failure));
    if (!socket.writableEnded) endSoon(socket);
  });
  socket.on("close", () => guarded(() => owner.closed(failure)));
  if (parts.origin === "client") socket.on("drain", () => socket.resume());
  return {
    write(buffers, written) {
      const isTaken = writeAll(socket, buffers, written);
      // Response heads are not flow-controlled, so the proxy does not read from clients that do not read responses.
      if (parts.origin === "client" && socket.writableLength > unreadBytes) socket.pause();
      return isTaken;
    },
    get waitingBytes() {
      return socket.writableLength;
    },
    end() {
      endSoon(socket);
    },
    destroy() {
      socket.destroy();
    },
  };
}

/**
 * Sends FIN, and destroys the socket after the peer has had time to read. A peer that keeps its side open would
 * otherwise keep the descriptor and the unread bytes in use.
 */
function endSoon(socket: net.Socket): void {
  socket.end();
  let left = socket.writableLength;
  let looks = 0;
  const look = (): void => {
    const isMoving = socket.writableLength < left;
    left = socket.writableLength;
    looks = isMoving ? 0 : looks + 1;
    if (left === 0 || looks >= endLooks) socket.destroy();
    else stop = wallClock.after(endLookMs, look);
  };
  let stop = wallClock.after(endLookMs, look);
  socket.once("close", () => stop());
}

function writeAll(
  socket: net.Socket,
  buffers: readonly Buffer[],
  written: (() => void) | undefined,
): boolean {
  if (socket.destroyed || socket.writableEnded) return true;
  const isOne = buffers.length === 1;
  if (!isOne) socket.cork();
  let left = buffers.length;
  for (const buffer of buffers) {
    left -= 1;
    if (left > 0 || written === undefined) socket.write(buffer);
    else socket.write(buffer, (error) => (error ? undefined : written()));
  }
  if (!isOne) socket.uncork();
  // Node emits "drain" only after a write that returned false, as every write above this number of bytes does.
  return socket.writableLength <= limits.socketBacklogBytes;
}
