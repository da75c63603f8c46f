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
import { isShort, TlsWriter } from "./tls-writer.ts";
import type { Wire, WireOwner } from "./wire.ts";

/**
 * If a client has left more than this many bytes of responses unread, the proxy stops reading its requests. Flow
 * control limits DATA to half of this, so only response heads can exceed the limit (CVE-2019-9517).
 */
export const unreadBytes = 2 * 1024 * 1024;
/**
 * Ms between checks of a closing socket, which is destroyed when the peer has read nothing for `endLooks` checks in a
 * row.
 */
export const endLookMs = 1000;
const endLooks = 5;

export type Keepalive = { readonly idleMs: number; readonly intervalMs: number; readonly count: number };

/** The kernel's keepalive is only a fallback, because the kernel sends no probe while a byte is unacknowledged (F1). */
export function setKeepalive(socket: net.Socket, keepalive: Keepalive): void {
  socket.setNoDelay(true);
  socket.setKeepAlive(true, keepalive.idleMs, keepalive.intervalMs, keepalive.count);
}

/** Returns the wire of a socket. `origin`: the side that counts as the cause of a failure. */
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
      failed(error);
    }
  };
  const failed = (error: unknown): void => {
    failure ??= failureFrom(error, "proxy");
    parts.journal.write({ kind: "internal.error", scope: "session", message: failure.message });
    socket.destroy();
  };
  const receive = (chunk: Buffer): void => {
    try {
      owner.receive(chunk);
    } catch (error) {
      failed(error);
    }
  };
  const output = new Output(socket, parts.origin === "client", () => guarded(() => owner.drained()));
  readInto(socket, receive);
  socket.on("data", receive);
  socket.on("error", (error) => {
    failure ??= failureFrom(error, parts.origin);
  });
  // The peer's FIN ends the session in both directions. The session is notified at once, because its streams would
  // otherwise stay open for seconds, until the peer has read the rest (D17).
  socket.on("end", () => {
    guarded(() => owner.closed(failure));
    if (!socket.writableEnded) output.end();
  });
  socket.on("close", () => guarded(() => owner.closed(failure)));
  return output;
}

/** Writes to a socket: through a TlsWriter after the TLS handshake, otherwise through Node's stream. */
class Output implements Wire {
  readonly #socket: net.Socket;
  /** True if the peer is a client. The proxy stops reading from a client that leaves too many bytes unread. */
  readonly #isClient: boolean;
  readonly #onDrained: () => void;
  #writer: TlsWriter | undefined;
  #isEnding = false;
  /** True if `write` has returned false, so that `drained` must be called later. */
  #isFull = false;

  constructor(socket: net.Socket, isClient: boolean, onDrained: () => void) {
    this.#socket = socket;
    this.#isClient = isClient;
    this.#onDrained = onDrained;
    socket.on("drain", () => this.#drained());
  }

  write(buffers: readonly Buffer[], written?: () => void): boolean {
    const socket = this.#socket;
    if (socket.destroyed || this.#isEnding) return true;
    this.#writer ??= TlsWriter.of(socket, () => this.#progressed());
    if (this.#writer === undefined) writeToStream(socket, buffers, written);
    else this.#writer.write(buffers, written);
    const { waitingBytes } = this;
    // The proxy stops reading from a client that does not read its responses, because flow control does not limit
    // response heads.
    if (this.#isClient && waitingBytes > unreadBytes) socket.pause();
    // If more bytes than `socketBacklogBytes` wait, Node's own write has also returned false, so Node will emit
    // "drain".
    const isTaken = waitingBytes <= limits.socketBacklogBytes;
    // `#isFull` is only set here, never reset. `drained` must be called even if a later write is taken, because the
    // socket may be paused until then.
    if (!isTaken) this.#isFull = true;
    return isTaken;
  }

  get waitingBytes(): number {
    return this.#writer?.waitingBytes ?? this.#socket.writableLength;
  }

  end(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    if (this.#writer === undefined || this.#writer.waitingBytes === 0) this.#socket.end();
    this.#endSoon();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #progressed(): void {
    if (this.waitingBytes > 0) return;
    if (this.#isEnding) this.#socket.end();
    else if (this.#isFull) this.#drained();
  }

  #drained(): void {
    this.#isFull = false;
    if (this.#isClient) this.#socket.resume();
    this.#onDrained();
  }

  /**
   * Destroys the socket after the peer has had time to read. A peer that keeps its side open would otherwise keep the
   * descriptor and the unread bytes in use.
   */
  #endSoon(): void {
    const socket = this.#socket;
    let left = this.waitingBytes;
    let looks = 0;
    const look = (): void => {
      const { waitingBytes } = this;
      looks = waitingBytes < left ? 0 : looks + 1;
      left = waitingBytes;
      if (left === 0 || looks >= endLooks) socket.destroy();
      else stop = wallClock.after(endLookMs, look);
    };
    let stop = wallClock.after(endLookMs, look);
    socket.once("close", () => stop());
  }
}

/** Passes the buffers to Node's stream, which keeps each buffer until the kernel has taken it. */
function writeToStream(
  socket: net.Socket,
  buffers: readonly Buffer[],
  written: (() => void) | undefined,
): void {
  const areCopied = written !== undefined && buffers.every(isShort);
  const own = areCopied ? buffers.map((buffer) => Buffer.from(buffer)) : buffers;
  if (areCopied) written();
  const isOne = own.length === 1;
  if (!isOne) socket.cork();
  let left = own.length;
  for (const buffer of own) {
    left -= 1;
    if (left > 0 || written === undefined || areCopied) socket.write(buffer);
    else socket.write(buffer, (error) => (error ? undefined : written()));
  }
  if (!isOne) socket.uncork();
}
