/**
 * Step 6 of 7: frames both ways, until one side ends.
 *
 * An Exchange stands between a downstream side and an upstream stream. Credit flows against the bytes: what has left
 * towards one side is granted to the other, so a slow client is felt by the apiserver and by nobody else. What a
 * broken upstream means for the client is decided in `upstreamGone`; who is asked next is serve's business. Next:
 * respond.
 */
import { Failure } from "../failure.ts";
import type { Buffered } from "../h2/buffered.ts";
import type { Field } from "../h2/field.ts";
import { errorCode, lost } from "../h2/protocol-error.ts";
import type { Side, SideOwner } from "../h2/side.ts";
import type { Stream } from "../h2/stream.ts";
import { limits } from "../limits.ts";
import type { Kind } from "./classify.ts";
import type { Client } from "./client.ts";
import { Held } from "./held.ts";
import type { Lane } from "./lane.ts";
import { WholeEvents } from "./whole-events.ts";

/** What serve knows of a request by the time that it is relayed. */
export type Order = {
  readonly client: Client;
  readonly method: string;
  readonly kind: Kind;
  readonly verb: string;
  readonly fields: readonly Field[];
  readonly auditId: string;
  /** No body follows the head. */
  readonly isBodiless: boolean;
};

export type ExchangeOwner = {
  /** The final head arrived, with this status. */
  answered(exchange: Exchange, status: number): void;
  /** The upstream side is gone with nothing answered, and the request may be sent again: place it anew. */
  replace(exchange: Exchange, failure: Failure): void;
  /** Nothing is answered and nothing may be sent again: tell the client. */
  failed(exchange: Exchange, failure: Failure): void;
  /** A watch that we can read lost its backend after `events` of them: when is it to be ended (D5)? */
  watchLost(exchange: Exchange, events: number): void;
  /** Over, whoever ended it. Told once. */
  ended(exchange: Exchange, end: ExchangeEnd): void;
};

export type ExchangeEnd = "complete" | "client-gone" | "backend-gone" | "refused";

const mistakable = new Set<number>([lost, errorCode.NO_ERROR, errorCode.CANCEL]);
/** Methods whose repetition changes nothing (RFC 9110 §9.2.1); they are the ones we may ask a second backend. */
const safeMethods = new Set(["GET", "HEAD"]);

/** Shared by all exchanges that have none, as most have: 50,000 watches feel every array. */
const noBackends: readonly string[] = [];
const noWait = (): void => {};

export class Exchange implements SideOwner {
  readonly order: Order;
  readonly #owner: ExchangeOwner;
  readonly #down: Side;
  readonly #buffered: Buffered;
  #up: Stream | undefined;
  #lane: Lane | undefined;
  /**
   * The request's body as far as it may have to be sent (again): all that came before there was a lane, bounded by the
   * client's own window; after that while it is short and nothing is answered.
   */
  #kept: Held | undefined;
  #keptTrailers: readonly Field[] | undefined;
  /** Is all of the body that has gone still here, to be sent once more should the backend refuse the stream? */
  #isRepeatable = true;
  #isRequestOver: boolean;
  #isAnswerOver = false;
  #isEnded = false;
  #status = 0;
  #events: WholeEvents | undefined;
  /** Octets already granted upstream when they were held back: their leaving grants nothing more. */
  #granted = 0;
  #delivered = 0;
  #sentBytes = 0;
  backend = "";
  tried: readonly string[] = noBackends;
  /** Undoes the present wait for a lane. */
  stopWaiting: () => void = noWait;

  constructor(order: Order, down: Side, owner: ExchangeOwner, buffered: Buffered) {
    this.#buffered = buffered;
    this.order = order;
    this.#down = down;
    this.#owner = owner;
    this.#isRequestOver = order.isBodiless;
  }

  get status(): number {
    return this.#status;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  get isAnswered(): boolean {
    return this.#status !== 0;
  }

  /** Whole events that went to the client, when this is a watch that we can read. */
  get events(): number {
    return this.#events?.events ?? 0;
  }

  /** Octets of the answer's body that left for the client. */
  get sentBytes(): number {
    return this.#sentBytes;
  }

  /** What waits here on this exchange's account, in either direction. */
  get queuedBytes(): number {
    const held = (this.#events?.heldBytes ?? 0) + (this.#kept?.length ?? 0);
    return this.#down.queuedBytes + (this.#up?.queuedBytes ?? 0) + held;
  }

  get down(): Side {
    return this.#down;
  }

  get lane(): Lane | undefined {
    return this.#lane;
  }

  /** Sends the request on a lane, with the body that has come so far. */
  start(lane: Lane): void {
    if (this.#isEnded) return;
    this.#lane = lane;
    this.stopWaiting = noWait;
    const { fields, isBodiless, method } = this.order;
    const up = lane.open(fields, isBodiless, new UpstreamEar(this));
    up.isHead = method === "HEAD";
    this.#up = up;
    if (!isBodiless) this.#sendKept(up);
  }

  #sendKept(up: Stream): void {
    const body = this.#kept?.peek();
    const trailers = this.#keptTrailers;
    const isLast = this.#isRequestOver && trailers === undefined;
    if (body !== undefined) up.sendData(body, 0, body.length, isLast, false);
    else if (isLast) up.sendData(Buffer.alloc(0), 0, 0, true, false);
    if (trailers !== undefined) up.sendHeaders(trailers, true);
    this.#forgetLongBody();
  }

  #keep(bytes: Buffer, start: number, end: number): void {
    this.#kept ??= new Held(this.#buffered);
    this.#kept.add(bytes, start, end);
  }

  /** A long body is not kept for a second sending: it is the client's to repeat. */
  #forgetLongBody(): void {
    if (this.#kept === undefined || this.#kept.length <= limits.repeatableBodyBytes) return;
    this.#isRepeatable = false;
    this.#kept.take();
    this.#kept = undefined;
  }

  /** The client was answered by us; nothing more is relayed. */
  refuse(status: number): void {
    this.#status = status;
    // What came of the body will never be granted back: a client that went on sending would wait for ever.
    if (!this.#isRequestOver) this.#down.reset(errorCode.NO_ERROR);
    this.#end("refused");
  }

  /** Ends a watch that we can read between two events, as the apiserver would; false when this is no such watch. */
  endWatch(): boolean {
    if (this.#isEnded || this.#events?.isReadable !== true) return false;
    if (this.#up !== undefined) this.#lane?.cancel(this.#up, true);
    this.#isAnswerOver = true;
    this.#down.sendData(Buffer.alloc(0), 0, 0, true, false);
    this.#end("backend-gone");
    return true;
  }

  /** Ends it now, whatever it is: the process is going, or memory is short and this one holds the most of it. */
  cut(): void {
    // Over, but its answer is not: a slow reader has not taken all of it.
    if (this.#isEnded) return this.#down.reset(errorCode.INTERNAL_ERROR);
    if (this.endWatch()) return;
    if (this.#up !== undefined) this.#lane?.cancel(this.#up, this.isAnswered);
    this.#resetDown(this.isAnswered ? lost : errorCode.REFUSED_STREAM);
  }

  // --- what the downstream side tells ---

  /** The request's trailers. */
  headers(fields: Field[]): void {
    this.#isRequestOver = true;
    this.#keptTrailers = fields;
    this.#up?.sendHeaders(fields, true);
    this.#endIfOver();
  }

  data(bytes: Buffer, start: number, end: number, endStream: boolean, hasRoom: boolean): void {
    if (endStream) this.#isRequestOver = true;
    if (this.#isEnded) {
      this.#down.grant(end - start);
    } else if (this.#up === undefined) {
      this.#keep(bytes, start, end);
    } else {
      if (this.#isRepeatable && !this.isAnswered) {
        this.#keep(bytes, start, end);
        this.#forgetLongBody();
      }
      this.#up.sendData(bytes, start, end, endStream, hasRoom);
      this.#endIfOver();
    }
  }

  /** The client gave up. */
  reset(): void {
    if (this.#isEnded) return;
    if (this.#up !== undefined) this.#lane?.cancel(this.#up, this.isAnswered);
    this.#end("client-gone");
  }

  sent(count: number): void {
    this.#sentBytes += count;
    const debt = Math.min(count, this.#granted);
    this.#granted -= debt;
    if (count > debt) this.#up?.grant(count - debt);
    this.#growWindow(count);
  }

  // --- what the upstream side tells, through its ear ---

  upstreamHeaders(fields: Field[], end: boolean): void {
    if (this.#isEnded) return;
    if (this.#status === 0) {
      const status = Number(fields[0]?.value);
      if (status < 200) return this.#down.sendHeaders(fields, false);
      this.#status = status;
      this.#kept?.take();
      this.#kept = undefined;
      this.#owner.answered(this, status);
      if (this.order.kind === "watch" && status === 200 && !end)
        this.#events = WholeEvents.of(fields, this.#buffered);
    } else {
      this.#releaseHeld();
    }
    if (end) this.#isAnswerOver = true;
    this.#down.sendHeaders(fields, end);
    this.#endIfOver();
  }

  upstreamData(bytes: Buffer, start: number, end: number, endStream: boolean, hasRoom: boolean): void {
    if (this.#isEnded) return;
    if (this.#events !== undefined)
      return this.#watchData(this.#events, bytes, start, end, endStream, hasRoom);
    if (endStream) this.#isAnswerOver = true;
    this.#down.sendData(bytes, start, end, endStream, hasRoom);
    if (endStream) this.#endIfOver();
  }

  /** Octets of the request left towards the backend. */
  upstreamSent(count: number): void {
    this.#down.grant(count);
  }

  /** The upstream stream was reset, or its session is lost. */
  upstreamGone(code: number): void {
    if (this.#isEnded) return;
    this.#up = undefined;
    if (this.#isAnswerOver) return this.#stopUpload();
    if (this.isAnswered) return this.#cutAnswer(code);
    const failure = new Failure(
      "backend-lost",
      "backend",
      `Backend ${this.backend} was lost before it answered`,
    );
    if (this.#maySendAgain(code)) this.#owner.replace(this, failure);
    else if (code === lost) this.#owner.failed(this, failure);
    else this.#resetDown(code);
  }

  // --- steps of the above ---

  /** The answer is whole and the backend wants no more body: the client may stop (RFC 9113 §8.1). */
  #stopUpload(): void {
    this.#down.reset(errorCode.NO_ERROR);
    this.#end("complete");
  }

  /**
   * watch.md §10: a stream that the backend refused was never processed; a request that was lost may be asked again
   * only if it is safe. Either way the whole of its body must still be here.
   */
  #maySendAgain(code: number): boolean {
    if (!this.#isRepeatable) return false;
    if (code === errorCode.REFUSED_STREAM) return true;
    const { method, kind, isBodiless } = this.order;
    return code === lost && isBodiless && safeMethods.has(method) && kind !== "long-running";
  }

  /**
   * A truncated answer never looks whole (F9). Only a watch may be ended between two events, and always is: a reset of
   * any code makes client-go list everything again (D5).
   */
  #cutAnswer(code: number): void {
    if (this.#events?.isReadable === true) this.#owner.watchLost(this, this.#events.events);
    else this.#resetDown(code);
  }

  /**
   * A client must not mistake what broke off: Node's takes NO_ERROR and CANCEL for an orderly end (nodejs/node 35209),
   * and after a head REFUSED_STREAM would say that nothing was processed.
   */
  #resetDown(code: number): void {
    const isRefusal = code === errorCode.REFUSED_STREAM;
    const isFalse = isRefusal ? this.isAnswered : mistakable.has(code);
    this.#down.reset(isFalse ? errorCode.INTERNAL_ERROR : code);
    this.#end("backend-gone");
  }

  #watchData(
    events: WholeEvents,
    bytes: Buffer,
    start: number,
    end: number,
    isLast: boolean,
    hasRoom: boolean,
  ): void {
    const upTo = isLast ? end : events.feed(bytes, start, end);
    if (upTo > start || isLast) {
      this.#releaseHeld();
      if (isLast) this.#isAnswerOver = true;
      if (upTo > start || isLast) this.#down.sendData(bytes, start, upTo, isLast, hasRoom);
    }
    if (upTo < end) {
      events.hold(bytes, upTo, end);
      // An event may be larger than the stream's window: what is held is granted now, not when it leaves.
      this.#granted += end - upTo;
      this.#up?.grant(end - upTo);
    }
    if (isLast) this.#endIfOver();
  }

  #releaseHeld(): void {
    const held = this.#events?.take();
    if (held !== undefined) this.#down.sendData(held, 0, held.length, false, false);
  }

  /** A reader that keeps up on a long way gets a larger window, twice as much each time that one was used up. */
  #growWindow(count: number): void {
    const up = this.#up;
    if (up === undefined) return;
    this.#delivered += count;
    const { size } = up.receiveWindow;
    if (this.#buffered.isTight) {
      if (size > limits.streamWindowTightBytes) up.shrinkReceiveWindow(limits.streamWindowTightBytes);
      return;
    }
    if (this.#delivered < 2 * size || size >= limits.streamWindowMostBytes) return;
    this.#delivered = 0;
    up.growReceiveWindow(Math.min(limits.streamWindowMostBytes, 2 * size));
  }

  #endIfOver(): void {
    if (this.#isAnswerOver && this.#isRequestOver) this.#end("complete");
  }

  #end(end: ExchangeEnd): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#kept?.take();
    this.stopWaiting();
    this.#owner.ended(this, end);
    this.#events?.take();
    this.#events = undefined;
  }
}

/** Hears the upstream stream for its exchange: a SideOwner of its own, since the exchange is the downstream one. */
class UpstreamEar implements SideOwner {
  readonly #exchange: Exchange;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
  }

  headers(fields: Field[], end: boolean): void {
    this.#exchange.upstreamHeaders(fields, end);
  }

  data(bytes: Buffer, start: number, end: number, endStream: boolean, hasRoom: boolean): void {
    this.#exchange.upstreamData(bytes, start, end, endStream, hasRoom);
  }

  reset(code: number): void {
    this.#exchange.upstreamGone(code);
  }

  sent(count: number): void {
    this.#exchange.upstreamSent(count);
  }
}
