/**
 * One attempt to get a response from one backend. It belongs to an exchange or a watch session, its owner. The attempt
 * waits for an upstream connection, opens a stream on it, and reports to the owner, which decides what the client gets.
 */
import { Failure } from "../../base/failure.ts";
import type { Field } from "../../h2/core/field.ts";
import { errorCode, lost } from "../../h2/core/protocol-error.ts";
import type { StreamWriter } from "../../h2/core/stream-writer.ts";
import type { Stream } from "../../h2/session/stream.ts";
import type { RequestContext } from "../context/request-context.ts";
import type { Connection, ConnectionUser } from "./connection.ts";
import { upstreamLimits } from "./limits.ts";
import type { PoolKey } from "./pool-key.ts";
import type { PoolSet } from "./pool-set.ts";
import type { Waiter } from "./shard.ts";

/** The exchange or watch session for which an attempt is made. */
export type AttemptOwner = {
  readonly context: RequestContext;
  /**
   * Returns the key of the connections that the request may use now. The key changes once a backend has accepted the
   * request's credential.
   */
  poolKey(): PoolKey;
  /** Called when the request's head was sent. Its body may follow. */
  attemptOpened?(attempt: Attempt, up: StreamWriter): void;
  /** Called if the attempt got no connection, and so has sent nothing. */
  attemptRefused(attempt: Attempt, failure: Failure): void;
  attemptHeaders(attempt: Attempt, fields: Field[], end: boolean): void;
  /** Called when `bytes[start, end)` of the response's body have arrived, as in StreamListener. */
  attemptData(attempt: Attempt, bytes: Buffer, start: number, end: number, endStream: boolean): void;
  /** Called when `count` bytes of the request's body were sent. */
  attemptSent?(attempt: Attempt, count: number): void;
  /** Called when the stream was reset, or its connection is lost. The attempt is over. */
  attemptGone(attempt: Attempt, code: number): void;
  /**
   * Called at every tick while the connection or the backend does not answer, or while the attempt takes longer than
   * reads usually do (D6).
   */
  attemptSuspected(attempt: Attempt): void;
  /** Called when the suspect connection or backend answers again. */
  attemptCleared?(attempt: Attempt): void;
  /**
   * Called when the backend has answered a PING that was sent after the response's head arrived, if the head is still
   * held back. This answer shows that the connection does not lose the backend's packets.
   */
  attemptPassed?(attempt: Attempt): void;
  /** Called when the connection takes no new streams, or the backend drains. Open streams still work for a while. */
  attemptLeaving?(attempt: Attempt): void;
  /** Called on an internal error, which ends this exchange, but no other exchange on the connection. */
  attemptFaulted(error: unknown): void;
  /** True if the request can only go on with this attempt. Undefined: it never depends on one attempt. */
  readonly isBound?: boolean;
};

export class Attempt implements ConnectionUser, Waiter {
  readonly backend: string;
  #owner: AttemptOwner;
  #connection: Connection | undefined;
  #isSuspect = false;
  /**
   * Clock reading at which the head was sent. Negative if the head was not sent, or if the backend refused the request
   * unprocessed. In whole ms, because V8 stores small integers in the object itself, without another allocation.
   */
  #sentAt = -1;
  /**
   * Ms from the sending of the request's head to the arrival of the response's final head; 0: no such head has arrived.
   * Unlike `sinceSent`, it does not include the time for which the proxy holds the response back. In whole ms, as
   * `#sentAt`.
   */
  answeredMs = 0;
  /** True if the attempt takes longer than reads of this backend usually do, although the backend answers PINGs. */
  isSlow = false;
  /** The rule of HTTP/2 that the response violated, so that the attempt has ended; undefined: none. */
  fault: string | undefined;
  #stream: Stream | undefined;
  #waitingPool: { forget(waiter: Waiter): void } | undefined;
  #key: PoolKey;
  /**
   * The response's head, held until the body begins, or until the backend answers a PING that was sent later. With a
   * wrong path MTU, the small head arrives and the large body never does; the request can still go to another backend.
   */
  #head: Field[] | undefined;
  /** In whole ms, as `#sentAt`. */
  #headAt = 0;

  constructor(backend: string, owner: AttemptOwner) {
    this.backend = backend;
    this.#owner = owner;
    this.#key = owner.poolKey();
  }

  // --- methods for the owner ---

  /** The key of the connections that the attempt may use or wait for. */
  get key(): PoolKey {
    return this.#key;
  }

  /** Makes a watch session the owner, once the response has proved to be a watch. */
  handOver(owner: AttemptOwner): void {
    this.#owner = owner;
  }

  /**
   * True if a backend may have begun to process the request: the head was sent, and the backend has not reported that
   * it ignored the request.
   */
  get mayHaveRun(): boolean {
    return this.#sentAt >= 0;
  }

  sinceSent(now: number): number {
    return now - this.#sentAt;
  }

  /** Sets `answeredMs`. Called when the response's final head arrives. */
  answered(now: number): void {
    this.answeredMs = Math.trunc(this.sinceSent(now));
  }

  /** The stream of the request; undefined while the attempt waits for a connection, and after the stream's end. */
  get up(): Stream | undefined {
    return this.#stream;
  }

  get queuedBytes(): number {
    return this.#stream?.queuedBytes ?? 0;
  }

  /** True while the backend or the connection leaves a PING unanswered. */
  get isSuspect(): boolean {
    return this.#isSuspect;
  }

  /** True if the connection has answered a PING since the head was sent, so the connection itself works. */
  get isOnAnsweringConnection(): boolean {
    return this.#connection?.isAnsweringSince(this.#sentAt) === true;
  }

  /** Takes a connection, or waits for one. May call `attemptOpened` or `attemptRefused` before it returns. */
  dial(pools: PoolSet): void {
    const connections = pools.poolOf(this.backend);
    if (connections === undefined)
      return this.refused(new Failure("no-backend", "proxy", `Backend ${this.backend} was removed`));
    const connection = connections.take(this.#key);
    if (connection !== undefined) return this.ready(connection);
    // Set before `wait` is called, because `wait` may refuse the attempt at once.
    this.#waitingPool = connections;
    connections.wait(this);
  }

  keepHead(head: Field[]): void {
    this.#head = head;
    this.#headAt = Math.ceil(this.#connection?.now ?? 0);
  }

  get keptHead(): Field[] | undefined {
    return this.#head;
  }

  takeHead(): Field[] | undefined {
    const head = this.#head;
    if (head !== undefined) this.#head = undefined;
    return head;
  }

  /**
   * Called after the backend has answered a PING that was sent at `answeredPingAt`. If a response's head is held back
   * and arrived before `answeredPingAt`, lets the owner forward it. By then, everything that the backend sent before it
   * answered the PING has arrived.
   */
  passed(answeredPingAt: number): void {
    if (this.#head !== undefined && answeredPingAt > this.#headAt)
      this.#contain(() => this.#owner.attemptPassed?.(this));
  }

  /** True if the connection takes no new streams any more. */
  get isConnectionRetiring(): boolean {
    return this.#connection?.isRetiring === true;
  }

  /** Round-trip time to the backend in ms; 0: unknown. */
  get rttMs(): number {
    return this.#connection?.rttMs ?? 0;
  }

  /**
   * Ends an attempt that is no longer needed. `isAnswered`: true if the final head of the response has arrived. After
   * this head, the reset of the stream does not count towards the connection's limit of resets (A1).
   */
  cancel(isAnswered: boolean): void {
    this.#waitingPool?.forget(this);
    this.#waitingPool = undefined;
    const stream = this.#stream;
    this.#stream = undefined;
    if (stream !== undefined) this.#connection?.cancel(stream, isAnswered);
  }

  // --- methods for the upstream connection ---

  rekey(): PoolKey {
    this.#key = this.#owner.poolKey();
    return this.#key;
  }

  ready(connection: Connection): void {
    this.#waitingPool = undefined;
    this.#isSuspect = false;
    this.#connection = connection;
    try {
      this.#open(connection);
    } catch (error) {
      this.#owner.attemptFaulted(error);
    }
  }

  #open(connection: Connection): void {
    const { fields, isBodiless, method } = this.#owner.context;
    // This line comes first: even if a later line of this method fails, the request must count as sent.
    this.#sentAt = Math.trunc(connection.now);
    const stream = connection.open(fields, isBodiless, this, method === "HEAD");
    this.#stream = stream;
    this.#owner.attemptOpened?.(this, stream);
  }

  refused(failure: Failure): void {
    this.#waitingPool = undefined;
    this.#contain(() => this.#owner.attemptRefused(this, failure));
  }

  suspected(): void {
    this.#isSuspect = true;
    this.#contain(() => this.#owner.attemptSuspected(this));
  }

  /**
   * Marks the attempt as slow and notifies the owner, which may ask another backend. Called at each tick during the
   * first `slowToldMs` for which the attempt is slow.
   */
  slowed(): void {
    this.isSlow = true;
    this.#contain(() => this.#owner.attemptSuspected(this));
  }

  /**
   * Shortens the measured wait by `ms`: the time for which the proxy's own event loop was stalled. The backend did not
   * cause this delay.
   */
  discountStall(ms: number): void {
    this.#sentAt += Math.trunc(ms);
  }

  cleared(): void {
    this.#isSuspect = false;
    this.#contain(() => this.#owner.attemptCleared?.(this));
  }

  leaving(): void {
    this.#contain(() => this.#owner.attemptLeaving?.(this));
  }

  leaveBehind(): boolean {
    if (this.#owner.isBound === true) return false;
    this.#contain(() => {
      this.cancel(true);
      this.reset(lost);
    });
    return true;
  }

  #contain(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#owner.attemptFaulted(error);
    }
  }

  // --- methods for the HTTP/2 stream ---

  headers(fields: Field[], end: boolean): void {
    this.#owner.attemptHeaders(this, fields, end);
  }

  data(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    this.#owner.attemptData(this, bytes, start, end, endStream);
  }

  reset(code: number): void {
    this.fault = this.#stream?.fault;
    this.#stream = undefined;
    // A GOAWAY with a last stream id below this stream's id also ends the stream with REFUSED_STREAM (RFC 9113 §8.7).
    if (code === errorCode.REFUSED_STREAM) this.#sentAt = -1;
    this.#owner.attemptGone(this, code);
  }

  sent(count: number): void {
    this.#owner.attemptSent?.(this, count);
  }
}

/**
 * Sizes the receive window of a stream to a backend: larger for a fast client and a distant backend, smaller for all
 * when memory is short. `delivered`: number of bytes that the client has taken since the window last grew. Returns this
 * number, or 0 if the window grows now.
 *
 * A window doubles once the client has taken twice its size, up to the bytes that arrive in one round trip. A larger
 * window would not make the transfer faster: the additional bytes would wait in the proxy and leave the processor's
 * caches. With such a window, a LIST over loopback was twice as expensive.
 */
export function growWindow(
  up: Stream,
  way: Pick<Attempt, "rttMs">,
  delivered: number,
  isTight: boolean,
): number {
  const { size } = up.receiveWindow;
  if (isTight) {
    if (size > upstreamLimits.streamWindowTightBytes)
      up.shrinkReceiveWindow(upstreamLimits.streamWindowTightBytes);
    return delivered;
  }
  if (delivered < 2 * size) return delivered;
  const roundTripBytes = Math.floor(way.rttMs * upstreamLimits.streamBytesPerMs);
  up.growReceiveWindow(Math.min(upstreamLimits.streamWindowMostBytes, roundTripBytes, 2 * size));
  return 0;
}
