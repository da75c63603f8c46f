/**
 * Writes to a TLS socket's handle without Node's stream. OpenSSL encrypts the bytes during the call, so the caller may
 * reuse its buffer at once. A stream would keep the buffer until the kernel has taken the bytes, and would copy several
 * buffers into a new ArrayBuffer. The stream's code is also a third of all JavaScript that runs for a small response.
 *
 * Node has no public way to do this, so this file makes the internal call that Node's stream makes (since Node 26.12:
 * `writeBuffer(null, bytes)` returns the request object of the write, or a number if there is nothing to wait for). In a
 * Node version with other internals, the proxy writes to the stream and is only slower.
 */
import net from "node:net";
import tls from "node:tls";
import { getSystemErrorName } from "node:util";

/**
 * The request object of one write. Node calls `oncomplete` when the kernel has taken the bytes, or when the write has
 * failed. `writeStatus` is not null if that was before `oncomplete` could be set. `error` is OpenSSL's, if the write
 * failed at once.
 */
type WriteRequest = {
  writer?: TlsWriter;
  oncomplete: (status: number) => void;
  writeStatus: number | null;
  readonly error?: string;
};
/** `progressed` is called after each write that the kernel has taken. */
type TlsWriterOwner = { progressed(): void };
/** The number that `writeBuffer` returns is 0 or a negative error of libuv. */
type Handle = { writeBuffer(request: null, bytes: Buffer): WriteRequest | number };

/**
 * A buffer shorter than this is copied if it must wait, because the caller's buffer is part of a pooled 64 KiB buffer:
 * 10,000 slow readers would otherwise hold 64 KiB each (A16). A copy of a longer buffer would cost more than the memory
 * that it saves.
 */
const copiedBytes = 16_384;
/**
 * Waiting buffers are joined up to this size, because a TLS handle takes only one write in each turn of the event loop.
 */
const joinedBytes = 65_536;

function zero(): number {
  return 0;
}

/** libuv's number of EPROTO, with which Node reports an error of OpenSSL. */
const protocolError = -71;

/** True if a stream of this Node calls `writeBuffer` without a request object: a sample socket shows it. */
function hasKnownInternals(): boolean {
  let isKnown = false;
  const writeBuffer = (request: unknown): number => {
    isKnown = request === null;
    return 0;
  };
  const handle = { readStart: zero, readStop: zero, getAsyncId: zero, close: zero, writeBuffer };
  try {
    const sample: unknown = Reflect.construct(net.Socket, [{ handle }]);
    if (!(sample instanceof net.Socket)) return false;
    sample.on("error", () => {});
    sample.write(Buffer.alloc(1));
    sample.destroy();
  } catch {
    return false;
  }
  return isKnown;
}

const isUsable = hasKnownInternals();

export class TlsWriter {
  readonly #socket: tls.TLSSocket;
  readonly #handle: Handle;
  readonly #owner: TlsWriterOwner;
  /** Number of bytes in the present write. Invariant: not 0 from each call of `writeBuffer` to its `oncomplete`. */
  #writingBytes = 0;
  #queue: Buffer[] = [];
  #queuedBytes = 0;
  /** The `written` functions of earlier writes. They are called when the last buffer of the queue is encrypted. */
  #onTaken: (() => void)[] = [];

  private constructor(socket: tls.TLSSocket, handle: Handle, owner: TlsWriterOwner) {
    this.#socket = socket;
    this.#handle = handle;
    this.#owner = owner;
  }

  /**
   * Returns a writer for a socket whose handshake is over; undefined: Node's stream must be used, for example because
   * it still holds bytes. From now on, nothing else may write to the socket.
   */
  static of(socket: net.Socket, owner: TlsWriterOwner): TlsWriter | undefined {
    if (!isUsable || !isReady(socket)) return undefined;
    const handle: unknown = Reflect.get(socket, "_handle");
    if (!isTlsHandle(handle)) return undefined;
    // With `allowHalfOpen` false, Node would end the socket when the peer ends its half, even if the queue still has
    // bytes.
    socket.allowHalfOpen = true;
    return new TlsWriter(socket, handle, owner);
  }

  /** Bytes that the kernel has not taken yet. */
  get waitingBytes(): number {
    return this.#writingBytes + this.#queuedBytes;
  }

  /**
   * Writes the buffers in order. `written` is called when the caller may reuse the buffers, usually before this method
   * returns.
   */
  write(buffers: readonly Buffer[], written: (() => void) | undefined): void {
    for (const buffer of buffers) {
      // A write without bytes is skipped: Node would abort the process at the next write.
      if (buffer.length === 0) continue;
      if (this.#writingBytes === 0) this.#submit(buffer);
      else this.#keep(buffer, written !== undefined);
    }
    if (written === undefined) return;
    if (this.#queuedBytes === 0 || buffers.every(isShort)) written();
    else this.#onTaken.push(written);
  }

  #keep(buffer: Buffer, isLent: boolean): void {
    this.#queue.push(isLent && isShort(buffer) ? Buffer.from(buffer) : buffer);
    this.#queuedBytes += buffer.length;
  }

  #submit(bytes: Buffer): void {
    if (this.#socket.destroyed) return;
    // Set before the write: `#fail` and `completed` reset it.
    this.#writingBytes = bytes.length;
    const request = this.#handle.writeBuffer(null, bytes);
    if (typeof request === "number") {
      if (request === 0) return this.completed(0);
      return this.#fail(request);
    }
    if (request.error !== undefined) return this.#fail(protocolError);
    request.writer = this;
    request.oncomplete = completed;
    if (request.writeStatus !== null) this.completed(request.writeStatus);
  }

  completed(status: number): void {
    this.#writingBytes = 0;
    if (status < 0) return this.#fail(status);
    if (this.#queue.length > 0) this.#submit(this.#next());
    if (this.#queue.length === 0) this.#taken();
    this.#owner.progressed();
  }

  /** Removes as many buffers from the queue as fit into one write, and joins them. */
  #next(): Buffer {
    let bytes = 0;
    let count = 0;
    for (const { length } of this.#queue) {
      if (count > 0 && bytes + length > joinedBytes) break;
      bytes += length;
      count += 1;
    }
    const taken = this.#queue.splice(0, count);
    this.#queuedBytes -= bytes;
    const [first] = taken;
    return taken.length === 1 && first !== undefined ? first : Buffer.concat(taken, bytes);
  }

  #taken(): void {
    if (this.#onTaken.length === 0) return;
    const all = this.#onTaken;
    this.#onTaken = [];
    for (const written of all) written();
  }

  #fail(status: number): void {
    this.#writingBytes = 0;
    this.#queue = [];
    this.#queuedBytes = 0;
    if (this.#socket.destroyed) return;
    const code = getSystemErrorName(status);
    this.#socket.destroy(Object.assign(new Error(`write ${code}`), { code, syscall: "write" }));
  }
}

/** The `oncomplete` of every request object. A function for each writer would take more memory. */
function completed(this: WriteRequest, status: number): void {
  this.writer?.completed(status);
}

/** True if copying the buffer costs less than keeping the caller's memory alive. */
export function isShort({ length }: Buffer): boolean {
  return length < copiedBytes;
}

/** Node sets `alpnProtocol` at the end of the handshake. */
function isReady(socket: net.Socket): socket is tls.TLSSocket {
  return (
    socket instanceof tls.TLSSocket &&
    socket.alpnProtocol !== null &&
    !socket.destroyed &&
    !socket.writableEnded &&
    socket.writableLength === 0
  );
}

function isTlsHandle(handle: unknown): handle is Handle {
  return typeof handle === "object" && handle !== null && "verifyError" in handle && "writeBuffer" in handle;
}
