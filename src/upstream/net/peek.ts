/**
 * Reads the first bytes of a new socket before its protocol is known, and puts back the bytes that the decision does
 * not consume. A deadline limits the time (A22). The caller's `Decide` function must limit the bytes of one socket;
 * `peekedBytes` limits the bytes of all sockets together.
 */
import type net from "node:net";
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";

/** Maximum number of bytes that are kept for all sockets whose first message is incomplete. */
export const peekedBytes = 16 * 1024 * 1024;

/** A decision (`verdict`), and how many of the bytes it consumes. */
export type Decision<T> = { readonly verdict: T; readonly taken: number };

/** Decides from all bytes so far. Undefined: too few; the function is called again when more have arrived. */
export type Decide<T> = (seen: Buffer) => Decision<T> | undefined;

/** Number of bytes that are kept now, over all sockets. */
let waitingBytes = 0;

/**
 * Calls `done` once, with the socket paused. Does not call it if the socket ends or stays undecided for
 * `limits.handshakeMs`.
 */
export function peek<T>(socket: net.Socket, clock: Clock, look: Decide<T>, done: (verdict: T) => void): void {
  const stopTimer = clock.after(limits.handshakeMs, () => socket.destroy());
  let room: Buffer = Buffer.alloc(0);
  let length = 0;
  let reserved = 0;
  const reserve = (bytes: number): void => {
    waitingBytes += bytes - reserved;
    reserved = bytes;
  };
  const leave = (): void => {
    stopTimer();
    reserve(0);
    socket.off("data", take);
    socket.off("close", leave);
  };
  // The event "readable" is not used: it fires again at once for bytes that are put back, so the loop would never end.
  const take = (chunk: Buffer): void => {
    room = length === 0 ? chunk : joined(room, length, chunk);
    length += chunk.length;
    const seen = room.subarray(0, length);
    const found = look(seen);
    if (found === undefined) {
      reserve(room.length);
      if (waitingBytes > peekedBytes) socket.destroy();
      return;
    }
    leave();
    socket.pause();
    if (found.taken < length) socket.unshift(seen.subarray(found.taken));
    done(found.verdict);
  };
  socket.on("close", leave);
  socket.on("data", take);
  // Restarts the socket, which an earlier call of `peek` may have paused.
  socket.resume();
}

/**
 * Appends a chunk. A full buffer doubles its size, so that each byte is copied only about twice, even if the bytes
 * arrive one by one.
 */
function joined(room: Buffer, length: number, chunk: Buffer): Buffer {
  const needed = length + chunk.length;
  const own = room.length >= needed && length > 0 ? room : Buffer.alloc(Math.max(needed, 2 * length));
  if (own !== room) room.copy(own, 0, 0, length);
  chunk.copy(own, length);
  return own;
}
