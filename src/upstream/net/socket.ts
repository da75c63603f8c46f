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
  return new SocketWire(socket, owner, parts);
}

/**
 * Writes through a TlsWriter after the TLS handshake, otherwise through Node's stream. Adds as few listeners to the
 * socket as possible, because they take memory for as long as the client is connected.
 */
class SocketWire implements Wire {
  readonly #socket: net.Socket;
  readonly #owner: WireOwner;
  readonly #journal: Journal;
  readonly #origin: Origin;
  #failure: Failure | undefined;
  #writer: TlsWriter | undefined;
  #isEnding = false;
  /** True if `write` has returned false, so that `drained` must be called later. */
  #isFull = false;

  constructor(socket: net.Socket, owner: WireOwner, parts: { journal: Journal; origin: Origin }) {
    this.#socket = socket;
    this.#owner = owner;
    this.#journal = parts.journal;
    this.#origin = parts.origin;
    const isDirect = readInto(socket, this);
    // With `readInto`, only bytes that the socket has read before arrive as "data". Without a listener for
    // "data", Node begins to read only at `resume`.
    if (!isDirect || socket.readableLength > 0) socket.on("data", (chunk: Buffer) => this.receive(chunk));
    else if (!socket.isPaused()) socket.resume();
    socket.on("error", (error) => {
      this.#failure ??= failureFrom(error, this.#origin);
    });
    // The peer's FIN ends the session in both directions. The session is notified at once, because its streams would
    // otherwise stay open for seconds, until the peer has read the rest (D17).
    socket.on("end", () => {
      this.#closed();
      if (!socket.writableEnded) this.end();
    });
    socket.on("close", () => this.#closed());
  }

  receive(chunk: Buffer): void {
    try {
      this.#owner.receive(chunk);
    } catch (error) {
      this.#failed(error);
    }
  }

  #closed(): void {
    try {
      this.#owner.closed(this.#failure);
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    this.#failure ??= failureFrom(error, "proxy");
    this.#journal.write({ kind: "internal.error", scope: "session", message: this.#failure.message });
    this.#socket.destroy();
  }

  write(buffers: readonly Buffer[], written?: () => void): boolean {
    const socket = this.#socket;
    if (socket.destroyed || this.#isEnding) return true;
    this.#writer ??= TlsWriter.of(socket, this);
    if (this.#writer === undefined) writeToStream(socket, buffers, written);
    else this.#writer.write(buffers, written);
    const { waitingBytes } = this;
    // The proxy stops reading from a client that does not read its responses, because flow control does not limit
    // response heads.
    if (this.#origin === "client" && waitingBytes > unreadBytes) socket.pause();
    const isTaken = waitingBytes <= limits.socketBacklogBytes;
    if (!isTaken) this.#awaitDrain();
    return isTaken;
  }

  /**
   * Makes sure that `drained` is called. A later write that is taken does not change this, because the socket may be
   * paused until `drained` is called.
   */
  #awaitDrain(): void {
    if (this.#isFull) return;
    this.#isFull = true;
    // If more bytes than `socketBacklogBytes` wait, Node's own write has also returned false, so Node will emit "drain".
    if (this.#writer === undefined) this.#socket.once("drain", () => this.#drained());
  }

  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress;
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

  /** Called after each write of the TlsWriter that the kernel has taken. */
  progressed(): void {
    if (this.waitingBytes > 0) return;
    if (this.#isEnding) this.#socket.end();
    else if (this.#isFull) this.#drained();
  }

  #drained(): void {
    this.#isFull = false;
    if (this.#origin === "client") this.#socket.resume();
    try {
      this.#owner.drained();
    } catch (error) {
      this.#failed(error);
    }
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
