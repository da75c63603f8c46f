/**
 * One attempt at one backend for an exchange: it waits for a connection, opens a stream there, and reports that stream,
 * and what its connection learns of the backend, to its owner. The exchange decides what that means for the client.
 */
import { Failure } from "../../base/failure.ts";
import type { Field } from "../../h2/core/field.ts";
import { errorCode } from "../../h2/core/protocol-error.ts";
import type { StreamWriter } from "../../h2/core/stream-writer.ts";
import type { Stream } from "../../h2/session/stream.ts";
import type { RequestContext } from "../context/request-context.ts";
import type { Connection, ConnectionUser } from "./connection.ts";
import { upstreamLimits } from "./limits.ts";
import type { PoolKey } from "./pool-key.ts";
import type { PoolSet } from "./pool-set.ts";
import type { Waiter } from "./shard.ts";

/** The exchange, watch session or list that an attempt belongs to. */
export type AttemptOwner = {
  readonly context: RequestContext;
  /** The connections that the request may use by now. */
  poolKey(): PoolKey;
  /** Its head was sent: the body may follow. */
  attemptOpened?(attempt: Attempt, up: StreamWriter): void;
  /** There was no connection. Nothing was sent. */
  attemptRefused(attempt: Attempt, failure: Failure): void;
  attemptHeaders(attempt: Attempt, fields: Field[], end: boolean): void;
  /** `bytes[start, end)` of the response's body, as in StreamListener. */
  attemptData(attempt: Attempt, bytes: Buffer, start: number, end: number, endStream: boolean): void;
  /** `count` bytes of the request's body have left. */
  attemptSent?(attempt: Attempt, count: number): void;
  /** Its stream was reset, or its connection is lost; the attempt is over. */
  attemptGone(attempt: Attempt, code: number): void;
  /**
   * Its connection or its backend does not answer, or it alone waits for long. Called again at every tick while that
   * lasts (D6).
   */
  attemptSuspected(attempt: Attempt): void;
  /** The connection or backend that was suspect answers again. */
  attemptCleared?(attempt: Attempt): void;
  /** A PING sent after the held head was answered: the path of its connection is whole. */
  attemptPassed?(attempt: Attempt): void;
  /** Its connection takes no new streams, or its backend is draining: open streams continue for a while. */
  attemptLeaving?(attempt: Attempt): void;
  /** An internal fault: it costs the exchange, and none of the other attempts that the connection notifies. */
  attemptFaulted(error: unknown): void;
};

export class Attempt implements ConnectionUser, Waiter {
  readonly backend: string;
  #owner: AttemptOwner;
  #connection: Connection | undefined;
  #isSuspect = false;
  /** When its head was sent, in whole ms of the clock: an integer needs no memory of its own. Below 0: see `mayHaveRun`. */
  #sentAt = -1;
  /** True if it has waited longer than reads of its backend usually do, although the backend answers PING. */
  isSlow = false;
  /** True if it is over because its response violated the protocol. */
  isMalformed = false;
  #stream: Stream | undefined;
  /** Where it waits, while it does. */
  #waitsIn: { forget(waiter: Waiter): void } | undefined;
  #key: PoolKey;
  /**
   * The head of a response whose body has not begun, held back (path MTU: a small head passes, the body does not). Until
   * the body begins, or a PING sent after the head is answered, the request can be sent to another backend without the
   * client noticing.
   */
  #head: Field[] | undefined;
  #headAt = 0;

  constructor(backend: string, owner: AttemptOwner) {
    this.backend = backend;
    this.#owner = owner;
    this.#key = owner.poolKey();
  }

  // --- called by its exchange ---

  /** Which connections it takes, or waits for. */
  get key(): PoolKey {
    return this.#key;
  }

  /** The response is a watch, so its session owns it from now on. */
  handOver(owner: AttemptOwner): void {
    this.#owner = owner;
  }

  /** True from the moment that its head is sent, unless the backend reports that it processed nothing of it. */
  get mayHaveRun(): boolean {
    return this.#sentAt >= 0;
  }

  /** How long ago it was sent, in ms. */
  sinceSent(now: number): number {
    return now - this.#sentAt;
  }

  /** The stream of the request: undefined while the attempt waits, and after its stream is over. */
  get up(): Stream | undefined {
    return this.#stream;
  }

  /** Bytes that wait here for it. */
  get queuedBytes(): number {
    return this.#stream?.queuedBytes ?? 0;
  }

  /** True if its backend, or its connection, leaves a PING unanswered. */
  get isSuspect(): boolean {
    return this.#isSuspect;
  }

  /** True if its connection has answered a PING since this was sent, so that its path is not at fault. */
  get isOnAnsweringConnection(): boolean {
    return this.#connection?.isAnsweringSince(this.#sentAt) === true;
  }

  /**
   * Takes a connection of its backend with room, or waits for one. May call `attemptOpened` or `attemptRefused` before it
   * returns.
   */
  dial(pools: PoolSet): void {
    const connections = pools.poolOf(this.backend);
    if (connections === undefined)
      return this.refused(new Failure("no-backend", "proxy", `Backend ${this.backend} was removed`));
    const connection = connections.take(this.#key);
    if (connection !== undefined) return this.ready(connection);
    // Set before the wait begins, because it may be refused at once.
    this.#waitsIn = connections;
    connections.wait(this);
  }

  keepHead(head: Field[]): void {
    this.#head = head;
    this.#headAt = this.#connection?.now ?? 0;
  }

  takeHead(): Field[] | undefined {
    const head = this.#head;
    if (head !== undefined) this.#head = undefined;
    return head;
  }

  /** The latest answered PING of its connection was sent at `answeredPingAt`: nothing of the body was lost before that. */
  passed(answeredPingAt: number): void {
    if (this.#head !== undefined && answeredPingAt > this.#headAt)
      this.#contain(() => this.#owner.attemptPassed?.(this));
  }

  /** True if its connection takes no new streams: the backend has sent GOAWAY. */
  get isConnectionRetiring(): boolean {
    return this.#connection?.isRetiring === true;
  }

  /** The round-trip time to its backend; 0 while it is not known. */
  get rttMs(): number {
    return this.#connection?.rttMs ?? 0;
  }

  /**
   * Ends it because it is not needed any more. `isAnswered`: its final head has come, so that a reset costs the
   * connection nothing (A1).
   */
  cancel(isAnswered: boolean): void {
    this.#waitsIn?.forget(this);
    this.#waitsIn = undefined;
    const stream = this.#stream;
    this.#stream = undefined;
    if (stream !== undefined) this.#connection?.cancel(stream, isAnswered);
  }

  // --- called by its connection ---

  rekey(): PoolKey {
    this.#key = this.#owner.poolKey();
    return this.#key;
  }

  ready(connection: Connection): void {
    this.#waitsIn = undefined;
    this.#isSuspect = false;
    this.#connection = connection;
    this.#contain(() => this.#open(connection));
  }

  #open(connection: Connection): void {
    const { fields, isBodiless, method } = this.#owner.context;
    // Set first: a fault in what follows must not make a request that was sent look unsent.
    this.#sentAt = Math.trunc(connection.now);
    const stream = connection.open(fields, isBodiless, this, method === "HEAD");
    this.#stream = stream;
    this.#owner.attemptOpened?.(this, stream);
  }

  refused(failure: Failure): void {
    this.#waitsIn = undefined;
    this.#contain(() => this.#owner.attemptRefused(this, failure));
  }

  suspected(): void {
    this.#isSuspect = true;
    this.#contain(() => this.#owner.attemptSuspected(this));
  }

  /** The attempt has waited so long that another backend may be asked. Called again at every look, for a while. */
  slowed(): void {
    this.isSlow = true;
    this.#contain(() => this.#owner.attemptSuspected(this));
  }

  /** The proxy's own event loop stood still for `ms`, which is not charged to the backend. */
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

  #contain(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#owner.attemptFaulted(error);
    }
  }

  // --- called by its stream ---

  headers(fields: Field[], end: boolean): void {
    this.#owner.attemptHeaders(this, fields, end);
  }

  data(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    this.#owner.attemptData(this, bytes, start, end, endStream);
  }

  reset(code: number): void {
    this.isMalformed = this.#stream?.isMalformed === true;
    this.#stream = undefined;
    // REFUSED_STREAM, or GOAWAY with a last stream id below this one (RFC 9113 §8.7).
    if (code === errorCode.REFUSED_STREAM) this.#sentAt = -1;
    this.#owner.attemptGone(this, code);
  }

  sent(count: number): void {
    this.#owner.attemptSent?.(this, count);
  }
}

/**
 * Sizes the window of a backend's stream: larger for a fast reader at a long distance, smaller for all when memory is
 * short. `delivered`: bytes that the client has taken
 * since the last change. Doubles a window each time that it was used up twice, but never beyond what arrives in one round
 * trip: bytes beyond that only wait here, and leave the processor's caches meanwhile (a LIST over loopback cost twice as
 * much). Returns what counts as delivered from here on.
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
