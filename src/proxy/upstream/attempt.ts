/**
 * One asking of one backend for an exchange: it waits for an upstream connection, opens a stream there, and hears that stream and what
 * its upstream connection learns of the backend. What any of it means for the client is the exchange's business.
 */
import type { Failure } from "../../base/failure.ts";
import type { Field } from "../../h2/core/field.ts";
import { errorCode } from "../../h2/core/protocol-error.ts";
import type { StreamWriter } from "../../h2/core/stream-writer.ts";
import type { Stream } from "../../h2/session/stream.ts";
import type { RequestContext } from "../context/request-context.ts";
import type { Connection, ConnectionUser } from "./connection.ts";
import type { HeldResponse } from "./held-response.ts";
import type { PoolKey } from "./pool-key.ts";
import type { PoolSet } from "./pool-set.ts";
import type { Waiter } from "./shard.ts";

/** What an attempt tells the exchange that it belongs to. */
export type AttemptOwner = {
  readonly context: RequestContext;
  /** Which upstream connections the request may use by now. */
  poolKey(): PoolKey;
  /** Its head has gone up: the body may follow. */
  attemptOpened?(attempt: Attempt, up: StreamWriter): void;
  /** No upstream connection could be had. Nothing was sent. */
  attemptRefused(attempt: Attempt, failure: Failure): void;
  attemptHeaders(attempt: Attempt, fields: Field[], end: boolean): void;
  /** `bytes[start, end)` of the answer's body, as a SideOwner hears it. */
  attemptData(attempt: Attempt, bytes: Buffer, start: number, end: number, endStream: boolean): void;
  /** `count` octets of the request's body have left. */
  attemptSent?(attempt: Attempt, count: number): void;
  /** Its stream was reset, or its upstream connection is lost; the attempt is over. */
  attemptGone(attempt: Attempt, code: number): void;
  /** Its upstream connection or its backend does not answer, or it alone waits for long. Told again at every tick while it does (D6). */
  attemptSuspected(attempt: Attempt): void;
  /** What was suspected answers again. */
  attemptCleared?(attempt: Attempt): void;
  /** Its upstream connection is whole since the head came that is kept back. */
  attemptPassed?(attempt: Attempt): void;
  /** Its upstream connection takes nobody any more, or its backend is going: what is there lives on for a while. */
  attemptLeaving?(attempt: Attempt): void;
  /** A fault of ours: it costs the exchange, and nobody whom the upstream connections tell after it. */
  attemptFaulted(error: unknown): void;
};

export class Attempt implements ConnectionUser, Waiter {
  readonly backend: string;
  /** Another one from the time that the answer is known to be a watch. */
  owner: AttemptOwner;
  #connection: Connection | undefined;
  #isSuspect = false;
  /** When its head went up, in whole ms of the clock: a number that needs no memory of its own. Below 0: see `mayHaveRun`. */
  #sentAt = -1;
  /** It has waited for longer than reads of its backend do, though that answers PING. */
  isSlow = false;
  /** It is over because its answer broke a rule of the protocol. */
  isMalformed = false;
  #stream: Stream | undefined;
  /** Where it waits, while it does. */
  #waitsIn: { forget(waiter: Waiter): void } | undefined;
  /** Which upstream connections it takes, or waits for. */
  key: PoolKey;
  /**
   * The head of an answer whose body has not begun, kept back (path MTU: a small head passes, the body does not). Until the
   * body begins, or a PING sent after the head is answered, the request can be asked elsewhere without the client's knowledge.
   */
  #head: Field[] | undefined;
  #headAt = 0;
  #refusal: HeldResponse | undefined;

  constructor(backend: string, owner: AttemptOwner) {
    this.backend = backend;
    this.owner = owner;
    this.key = owner.poolKey();
  }

  // --- what its exchange does with it ---

  /** True from the moment that its head goes up, unless the backend says that it processed nothing of it. */
  get mayHaveRun(): boolean {
    return this.#sentAt >= 0;
  }

  /** How long ago it was sent, in ms. */
  sinceSent(now: number): number {
    return now - this.#sentAt;
  }

  /** Where the request is going: undefined while the attempt waits, and when its stream is over. */
  get up(): Stream | undefined {
    return this.#stream;
  }

  /** What waits here on its account. */
  get queuedBytes(): number {
    return (this.#stream?.queuedBytes ?? 0) + (this.#refusal?.heldBytes ?? 0);
  }

  /** Does its backend, or its upstream connection, leave a PING unanswered? */
  get isSuspect(): boolean {
    return this.#isSuspect;
  }

  /** Has its upstream connection proven since this was sent that it is not in a hole of its own? */
  get isOnAnsweringConnection(): boolean {
    return this.#connection?.isAnsweringSince(this.#sentAt) === true;
  }

  /** Takes an upstream connection of its backend with room, or waits for one. `legOpened` or `legRefused` may come before this returns. */
  dial(pools: PoolSet): void {
    const connections = pools.poolOf(this.backend);
    if (connections === undefined) return this.refused(pools.unknown(this.backend));
    const connection = connections.take(this.key);
    if (connection !== undefined) return this.ready(connection);
    // Before the wait begins: it may be refused at once.
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

  /** An answer that is held, since another one may be better. */
  get refusal(): HeldResponse | undefined {
    return this.#refusal;
  }

  keepRefusal(refusal: HeldResponse): void {
    this.#refusal = refusal;
  }

  takeRefusal(): HeldResponse | undefined {
    const refusal = this.#refusal;
    this.#refusal = undefined;
    return refusal;
  }

  /** The upstream connection's latest answered PING was sent at `answeredPingAt`: nothing of the body was lost before it. */
  passed(answeredPingAt: number): void {
    if (this.#head !== undefined && answeredPingAt > this.#headAt)
      this.#contain(() => this.owner.attemptPassed?.(this));
  }

  /** Its upstream connection takes nobody any more: the backend has said GOAWAY. */
  get isConnectionRetiring(): boolean {
    return this.#connection?.isRetiring === true;
  }

  /** How far away its backend is: what a PING takes there and back; 0 while that is not known. */
  get rttMs(): number {
    return this.#connection?.rttMs ?? 0;
  }

  /** Nobody wants it any more. `isAnswered`: its final head has come, so that a reset costs the upstream connection nothing (A1). */
  cancel(isAnswered: boolean): void {
    this.#waitsIn?.forget(this);
    this.#waitsIn = undefined;
    this.#refusal?.forget();
    const stream = this.#stream;
    this.#stream = undefined;
    if (stream !== undefined) this.#connection?.cancel(stream, isAnswered);
  }

  // --- what the upstream connections tell ---

  wanted(): PoolKey {
    return this.owner.poolKey();
  }

  ready(connection: Connection): void {
    this.#waitsIn = undefined;
    this.#isSuspect = false;
    this.#connection = connection;
    this.#contain(() => this.#open(connection));
  }

  #open(connection: Connection): void {
    const { fields, isBodiless, method } = this.owner.context;
    // First: a fault in what follows must not make a request that has left look unsent.
    this.#sentAt = Math.trunc(connection.now);
    const stream = connection.open(fields, isBodiless, this);
    stream.isHead = method === "HEAD";
    this.#stream = stream;
    this.owner.attemptOpened?.(this, stream);
  }

  refused(failure: Failure): void {
    this.#waitsIn = undefined;
    this.#contain(() => this.owner.attemptRefused(this, failure));
  }

  suspected(): void {
    this.#isSuspect = true;
    this.#contain(() => this.owner.attemptSuspected(this));
  }

  /** Whoever has waited so long may be asked of another; told again at every look, for a while. */
  slowed(): void {
    this.isSlow = true;
    this.#contain(() => this.owner.attemptSuspected(this));
  }

  /** Our own loop stood still for so long: that is not its backend's. */
  discountStall(ms: number): void {
    this.#sentAt += Math.trunc(ms);
  }

  cleared(): void {
    this.#isSuspect = false;
    this.#contain(() => this.owner.attemptCleared?.(this));
  }

  leaving(): void {
    this.#contain(() => this.owner.attemptLeaving?.(this));
  }

  #contain(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.owner.attemptFaulted(error);
    }
  }

  // --- what the stream tells ---

  headers(fields: Field[], end: boolean): void {
    this.owner.attemptHeaders(this, fields, end);
  }

  data(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    this.owner.attemptData(this, bytes, start, end, endStream);
  }

  reset(code: number): void {
    this.isMalformed = this.#stream?.isMalformed === true;
    this.#stream = undefined;
    // REFUSED_STREAM, or GOAWAY with a last stream id below this one (RFC 9113 §8.7).
    if (code === errorCode.REFUSED_STREAM) this.#sentAt = -1;
    this.owner.attemptGone(this, code);
  }

  sent(count: number): void {
    this.owner.attemptSent?.(this, count);
  }
}
