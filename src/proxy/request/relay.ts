/**
 * Step 6 of 7: frames both ways, until one side ends.
 *
 * An Exchange stands between a downstream side and the upstream stream of its leg. Credit flows against the bytes:
 * what has left towards one side is granted to the other, so a slow client is felt by the apiserver and by nobody else.
 * What a broken upstream means for the client is decided in `legGone`; who is asked next is serve's business. Next:
 * respond.
 */
import { Failure } from "../../base/failure.ts";
import type { Buffered } from "../../h2/core/buffered.ts";
import type { Field } from "../../h2/core/field.ts";
import { errorCode, lost } from "../../h2/core/protocol-error.ts";
import type { Side, SideOwner } from "../../h2/core/side.ts";
import type { WatchTally } from "../../watch/session/progress.ts";
import type { WatchHost } from "../../watch/session/watch-host.ts";
import type { WatchSession } from "../../watch/session/watch-session.ts";
import { isRepeatable, type Order } from "../context/order.ts";
import { dropsOf } from "../identity/identity.ts";
import { growWindow } from "../upstream/grow-window.ts";
import type { Leg, LegOwner } from "../upstream/leg.ts";
import type { PoolKey } from "../upstream/pool-key.ts";
import { isRefusal, isShort, Refusal } from "../upstream/refusal.ts";
import { honestCode, isSentAgain } from "./honest-code.ts";
import { Legs } from "./legs.ts";
import { RequestBody } from "./request-body.ts";

/** What an exchange asks of its course, and what it reports to it. One for each exchange (serve.ts). */
export type ExchangeOwner = {
  /** Which upstream connections it may use by now. */
  poolKey(exchange: Exchange): PoolKey;
  /** One of its legs has no upstream connection in good time, or is on one that does not answer: may it be asked elsewhere too? */
  suspected(exchange: Exchange, leg: Leg): void;
  /** One leg was refused, and the other is still out: when is the refusal to be taken after all? */
  refusalHeld(exchange: Exchange): void;
  /** Is this the refusal of a backend that is going, and is there another one to be asked? */
  mayLeave(exchange: Exchange, leg: Leg, refusal: readonly Field[]): boolean;
  /** The final head arrived, with this status. */
  answered(exchange: Exchange, status: number, by: AnsweredBy): void;
  /** Its legs are gone with nothing answered, and the request may be sent again: place it anew. */
  replace(exchange: Exchange, failure: Failure, isSentAway?: boolean): void;
  /** Nothing is answered and nothing may be sent again: tell the client. */
  failed(exchange: Exchange, failure: Failure): void;
  /** Answers the client with a Status, and writes nothing to the journal. */
  answer(exchange: Exchange, failure: Failure): void;
  /** Its answer is a watch: what carries it from here on, or undefined when nobody here can read it. */
  watchOf(exchange: Exchange, head: readonly Field[], leg: Leg): WatchSession | undefined;
  /** A backend answered with this status, as it was asked for a watch once more. */
  learnt(status: number): void;
  /** A fault of ours has cost it. */
  faulted(error: unknown): void;
  /** Over, whoever ended it. Told once. */
  ended(exchange: Exchange, end: ExchangeEnd): void;
};

/** Who answered, and who was asked as well and did not. */
export type AnsweredBy = { readonly leg: Leg; readonly rest: Leg | undefined };

export type ExchangeEnd = "complete" | "client-gone" | "backend-gone" | "refused";

const noWait = (): void => {};

function unknownOutcome(origin: "proxy" | "backend", what: string): Failure {
  return new Failure("outcome-unknown", origin, `${what}: whether it was executed is not known`);
}

export class Exchange implements SideOwner, LegOwner, WatchHost {
  readonly order: Order;
  readonly #owner: ExchangeOwner;
  readonly down: Side;
  readonly #buffered: Buffered;
  readonly legs: Legs;
  /** Undefined when no body follows the head. */
  readonly #body: RequestBody | undefined;
  #isAnswerOver = false;
  #isEnded = false;
  #status = 0;
  /** Once it is answered, if it is a watch that we can read: then its legs are told there. */
  #watch: WatchSession | undefined;
  #delivered = 0;
  #sentBytes = 0;
  /** Where exchanges.ts keeps it while it lives. */
  liveAt = -1;
  /** Where a watch that lives is counted (exchanges.ts). */
  tally: WatchTally | undefined;
  /** Of its head, as `longHeadBytes` counts it. */
  headBytes = 0;
  /** Undoes the present wait for a time to come. */
  stopWaiting: () => void = noWait;

  constructor(order: Order, down: Side, owner: ExchangeOwner, buffered: Buffered) {
    this.#buffered = buffered;
    this.order = order;
    this.down = down;
    this.#owner = owner;
    this.legs = new Legs(this);
    this.#body = order.isBodiless ? undefined : new RequestBody(buffered);
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

  get watch(): WatchSession | undefined {
    return this.#watch;
  }

  /** Octets of the answer's body that left for the client. */
  get sentBytes(): number {
    return this.#sentBytes;
  }

  /** What waits here on this exchange's account, in either direction. */
  get queuedBytes(): number {
    const { merge } = this.#watch ?? {};
    return (
      this.down.queuedBytes + this.legs.queuedBytes + (merge?.heldBytes ?? 0) + (this.#body?.length ?? 0)
    );
  }

  get backend(): string {
    return this.legs.backend;
  }

  /** Is it open whether anybody who was asked will answer? */
  get isDoubted(): boolean {
    return !this.isAnswered && this.legs.isDoubted;
  }

  /** Takes a refusal that was kept back: nobody has done better in time. */
  settle(): void {
    this.legs.settle();
    this.#relayRefusal();
  }

  /** The client was answered by us; nothing more is relayed. */
  refuse(status: number): void {
    this.#status = status;
    // What came of the body will never be granted back: a client that went on sending would wait for ever.
    if (this.#body?.isOver === false) this.down.reset(errorCode.NO_ERROR);
    this.#end("refused");
  }

  /** Lets a watch that we can read end as soon as its client takes it well (D5); false when this is no such watch. */
  letWatchEnd(): boolean {
    if (this.#isEnded || this.#watch?.progress.isReadable !== true) return false;
    this.#watch.finish();
    return true;
  }

  /**
   * Ends it now, whatever it is: the process or its cluster goes, memory is short, or a fault of ours has cost it. The client
   * is told "not processed" only if nothing of the request has left (D17): Go's transport sends it again then, a write too.
   */
  cut(): void {
    // Over, but its answer is not: a slow reader has not taken all of it.
    if (this.#isEnded) return this.down.reset(errorCode.INTERNAL_ERROR);
    if (this.#watch?.progress.isReadable === true) return this.endsHere(false);
    const { isAnswered } = this;
    const { mayHaveRun } = this.legs;
    this.legs.cancel(isAnswered);
    // An HTTP/1.1 connection that stays open keeps its last request's head in memory, and memory may be why it is cut.
    if (!isAnswered) this.down.closeAfter?.();
    if (isAnswered) this.#resetDown(lost);
    else if (mayHaveRun) this.#tellCut();
    else this.#resetDown(errorCode.REFUSED_STREAM);
  }

  /** client-go repeats a request after a 503 with Retry-After, so only a safe one is told that. */
  #tellCut(): void {
    const failure = isRepeatable(this.order)
      ? new Failure("draining", "proxy", "The proxy ended this request before its answer came")
      : unknownOutcome("proxy", "The proxy ended this request before its answer came");
    this.#owner.answer(this, failure);
  }

  // --- what the downstream side tells ---

  /** The request's trailers. */
  headers(fields: Field[]): void {
    const drops = dropsOf(this.order.client.identity, this.order.vouched);
    const said = drops === undefined ? fields : fields.filter((field) => !drops(field));
    this.#body?.endWith(said);
    this.legs.first?.up?.sendHeaders(said, true);
    this.#endIfOver();
  }

  data(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    const body = this.#body;
    if (endStream && body !== undefined) body.isOver = true;
    const up = this.legs.first?.up;
    if (this.#isEnded) {
      this.down.grant(end - start);
    } else if (up === undefined) {
      body?.keep(bytes, start, end);
    } else {
      body?.keepForAgain(bytes, start, end);
      up.sendData(bytes, start, end, endStream);
      this.#endIfOver();
    }
  }

  /** The client gave up. */
  reset(): void {
    if (this.#isEnded) return;
    this.legs.cancel(this.isAnswered);
    this.#end("client-gone");
  }

  sent(count: number): void {
    this.#sentBytes += count;
    if (this.tally !== undefined) this.tally.bytes += count;
    const granted = this.#watch?.settle(count) ?? count;
    const leg = this.#watch?.leg ?? this.legs.first;
    if (leg?.up === undefined) return;
    if (granted > 0) leg.up.grant(granted);
    this.#delivered = growWindow(leg.up, leg, this.#delivered + count, this.#buffered.isTight);
  }

  // --- what its leg tells ---

  poolKey(): PoolKey {
    return this.#owner.poolKey(this);
  }

  legOpened(_leg: Leg, up: Side): void {
    this.#body?.sendTo(up);
  }

  /** Nothing was sent: whoever else can be asked is asked. */
  legRefused(leg: Leg, failure: Failure): void {
    if (!this.#goesOnWithout(leg)) this.#owner.replace(this, failure);
  }

  legHeaders(leg: Leg, fields: Field[], end: boolean): void {
    if (this.#isEnded) return;
    if (leg.refusal !== undefined) {
      leg.refusal.endWith(fields);
      return this.#relayIfWhole(leg);
    }
    this.#showHead(leg);
    if (this.isAnswered) this.#sendHead(fields, end);
    else this.#takeHead(leg, fields, end);
  }

  legData(leg: Leg, bytes: Buffer, start: number, end: number, endStream: boolean): void {
    if (this.#isEnded) return;
    if (leg.refusal !== undefined) {
      leg.refusal.keep(bytes, start, end, endStream);
      return this.#relayIfWhole(leg);
    }
    if (leg.head !== undefined) this.#showHead(leg);
    if (endStream) this.#isAnswerOver = true;
    this.down.sendData(bytes, start, end, endStream);
    if (endStream) this.#endIfOver();
  }

  legSent(_leg: Leg, count: number): void {
    this.down.grant(count);
  }

  legSuspected(leg: Leg): void {
    if (!this.#isEnded && !this.isAnswered) this.#owner.suspected(this, leg);
  }

  /** What was done about a suspicion goes on: the first answer wins. */
  legCleared(): void {}

  legPassed(leg: Leg): void {
    if (!this.#isEnded) this.#showHead(leg);
  }

  /** Whoever has not answered yet still will. */
  legLeaving(): void {}

  legFaulted(error: unknown): void {
    this.#owner.faulted(error);
    this.cut();
  }

  legGone(leg: Leg, code: number): void {
    if (this.#isEnded) return;
    this.#showBroken(leg, code);
    if (this.#isAnswerOver) return this.#stopUpload();
    // A truncated answer never looks whole (F9).
    if (this.isAnswered) return this.#resetDown(code);
    if (this.#goesOnWithout(leg)) return;
    if (leg.isMalformed) return this.#owner.failed(this, malformedAnswer(leg));
    const message = `Backend ${leg.backend} was lost before it answered`;
    const failure = new Failure("backend-lost", "backend", message);
    const isSentAway = code === errorCode.REFUSED_STREAM && leg.isConnectionRetiring;
    if (this.#maySendAgain(code)) this.#owner.replace(this, failure, isSentAway);
    else if (code === lost) this.#owner.failed(this, failure);
    else if (this.#isRepeatedInVain(code))
      this.#owner.failed(
        this,
        unknownOutcome("backend", `Backend ${leg.backend} broke off before it answered`),
      );
    else this.#resetDown(code);
  }

  /** True if this code would make a client send a write again that a backend may have executed. */
  #isRepeatedInVain(code: number): boolean {
    return isSentAgain(code) && this.legs.mayHaveRun && !isRepeatable(this.order);
  }

  // --- what it does as a watch ---

  learnt(status: number): void {
    this.#owner.learnt(status);
  }

  /** Its client goes there with all that it asks from now on: it never sees two caches in turn (k/k 59848). */
  goesOn(backend: string): void {
    const { client } = this.order;
    if (client.backend === this.backend) client.backend = backend;
    this.legs.backend = backend;
  }

  endsHere(isWhole: boolean): void {
    if (this.#isEnded) return;
    this.#isAnswerOver = true;
    this.down.sendData(Buffer.alloc(0), 0, 0, true);
    this.#end(isWhole ? "complete" : "backend-gone");
  }

  breaksOff(): void {
    this.#resetDown(lost);
  }

  // --- steps of the above ---

  #takeHead(leg: Leg, fields: Field[], end: boolean): void {
    const status = Number(fields[0]?.value);
    if (status < 200) {
      // The hedge's would be the second of its kind.
      if (leg === this.legs.first) this.down.sendHeaders(fields, false);
    } else if (!isRefusal(status) || !this.#holdsBack(leg, fields, end)) {
      if (end || this.order.kind !== "plain" || !isRepeatable(this.order))
        return this.#answer(leg, status, fields, end);
      leg.keepHead(fields);
    }
  }

  /** Its backend broke it off by itself: what it had said is the answer. */
  #showBroken(leg: Leg, code: number): void {
    if (code !== lost) this.#showHead(leg);
  }

  #showHead(leg: Leg): void {
    const { head } = leg;
    if (head === undefined) return;
    leg.head = undefined;
    this.#answer(leg, Number(head[0]?.value), head, false);
  }

  #answer(leg: Leg, status: number, fields: Field[], end: boolean): void {
    const rest = this.legs.prefer(leg);
    this.stopWaiting();
    this.#status = status;
    this.#body?.forget();
    this.#owner.answered(this, status, { leg, rest });
    this.#sendHead(fields, end);
    if (this.order.kind !== "watch" || status !== 200 || end) return;
    this.#watch = this.#owner.watchOf(this, fields, leg);
    if (this.#watch === undefined) return;
    this.legs.first = undefined;
    if (this.tally !== undefined) this.#watch.progress.countIn(this.tally);
  }

  #sendHead(fields: Field[], end: boolean): void {
    if (end) this.#isAnswerOver = true;
    this.down.sendHeaders(fields, end);
    this.#endIfOver();
  }

  /** An answer that refuses is kept while the other leg may do better, and replaced when its backend is going. */
  #holdsBack(leg: Leg, fields: Field[], end: boolean): boolean {
    const rest = this.legs.otherThan(leg);
    if (rest !== undefined && rest.refusal === undefined) {
      leg.refusal = new Refusal(fields, end, this.#buffered);
      this.#owner.refusalHeld(this);
      return true;
    }
    if (this.#body?.isRepeatable === false) return false;
    if (!this.#owner.mayLeave(this, leg, fields))
      return rest === undefined && this.#waitsForRest(leg, fields, end);
    leg.cancel(true);
    const message = `Backend ${leg.backend} is shutting down`;
    if (!this.#goesOnWithout(leg))
      this.#owner.replace(this, new Failure("backend-refused", "backend", message));
    return true;
  }

  /** What is cut off in the middle can be asked for elsewhere, as long as its client knows nothing of it. */
  #waitsForRest(leg: Leg, fields: Field[], end: boolean): boolean {
    if (end || !isShort(fields) || !isRepeatable(this.order)) return false;
    leg.refusal = new Refusal(fields, false, this.#buffered);
    return true;
  }

  #relayIfWhole(leg: Leg): void {
    if (!this.legs.hasTwo && leg.refusal?.isWhole === true) this.#relayRefusal();
  }

  /** One leg is over. Is there another, whose answer is as good? */
  #goesOnWithout(leg: Leg): boolean {
    if (!this.legs.goesOnWithout(leg)) return false;
    this.#relayRefusal();
    return true;
  }

  #relayRefusal(): void {
    const leg = this.legs.first;
    const refusal = leg?.refusal;
    if (leg === undefined || refusal === undefined) return;
    leg.refusal = undefined;
    refusal.tell({
      headers: (fields, end) =>
        this.isAnswered
          ? this.#sendHead(fields, end)
          : this.#answer(leg, Number(fields[0]?.value), fields, end),
      data: (body, end) => this.legData(leg, body, 0, body.length, end),
    });
  }

  /** The answer is whole and the backend wants no more body: the client may stop (RFC 9113 §8.1). */
  #stopUpload(): void {
    this.down.reset(errorCode.NO_ERROR);
    this.#end("complete");
  }

  /**
   * watch.md §10: a stream that the backend refused was never processed; a request that was lost may be asked again
   * only if it is safe. Either way the whole of its body must still be here.
   */
  #maySendAgain(code: number): boolean {
    if (this.#body?.isRepeatable === false) return false;
    return code === errorCode.REFUSED_STREAM || (code === lost && isRepeatable(this.order));
  }

  #resetDown(code: number): void {
    this.down.reset(honestCode(code, this.isAnswered || this.legs.mayHaveRun));
    this.#end("backend-gone");
  }

  #endIfOver(): void {
    if (this.#isAnswerOver && this.#body?.isOver !== false) this.#end("complete");
  }

  #end(end: ExchangeEnd): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#body?.forget();
    this.stopWaiting();
    this.#owner.ended(this, end);
    this.#watch?.cancel();
  }
}

/**
 * The backend may have processed the request: relayed as RST_STREAM(PROTOCOL_ERROR), Go's transport would send it again
 * by itself, and a client of HTTP/1.1 would be told 400.
 */
function malformedAnswer({ backend }: Leg): Failure {
  return new Failure("backend-protocol", "backend", `Backend ${backend} sent a malformed answer`);
}
