/**
 * One upstream stream of a watch. Forwards only whole events, and keeps the beginning of an incomplete event. Therefore
 * the watch can continue on another backend if its backend dies in the middle of an event (D3).
 */

import { AccountedBuffer, type Buffered } from "../../h2/core/buffered.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import type { Attempt } from "../../upstream/pool/attempt.ts";
import { type CacheProgress, isRewound } from "../cache/cache-progress.ts";
import { type EventDecoder, isOpaque, needsMore, type WatchEvent } from "../codec/event.ts";
import type { Decoders } from "../codec/framing.ts";
import { watchLimits } from "../limits.ts";
import { type Fate, Reading } from "./session-progress.ts";

/** Decides what happens to each event, and sends events to the client. `WatchSession` implements it. */
export type EventTaker = {
  take(event: WatchEvent, from: WatchStream): Fate;
  /**
   * Called if the stream is not in the format of its content type. Returns true if its bytes may be forwarded as they
   * are.
   */
  mayGoOn(from: WatchStream): boolean;
  /** Sends `bytes[start, end)` to the client: whole events, or bytes of a stream that cannot be decoded. */
  forward(bytes: Buffer, start: number, end: number, from: WatchStream): void;
  /** Sends the kept beginning of an event, for which the stream got flow-control credit on receipt. */
  release(held: Buffer): void;
};

/**
 * Where the reading of a chunk ended. all: at the end of the chunk. opaque: at undecodable bytes. refused, broken: at
 * an event whose `Fate` is "refused" or "broken".
 */
export type Passed = "all" | "opaque" | "refused" | "broken";

/** The placeholder for what a stream has delivered, until its request is sent. */
const unread = new Reading("", true, "");

export class WatchStream {
  readonly attempt: Attempt;
  readonly #taker: EventTaker;
  /** The bytes of an incomplete event; undefined: none. */
  #held: AccountedBuffer | undefined;
  readonly #buffered: Buffered;
  /** Events that a sentinel's second stream (D13) has delivered before the first stream; undefined: none so far. */
  #ahead: Ahead | undefined;
  /** Undefined until the response is accepted, and for a response that the proxy cannot decode. */
  #decoders: Decoders | undefined;
  /** Defined while an event is incomplete, and after an event whose `Fate` is "refused" or "broken". */
  #decoder: EventDecoder | undefined;
  #isOpaque = false;
  #reading = unread;
  /** Progress of the watch cache that feeds the stream; undefined before the response, and for aggregated APIs. */
  cache: CacheProgress | undefined;
  /**
   * Progress of the watch cache that feeds the stream, within the watch's scope; undefined if `cache` is undefined, and
   * for a watch with a name or a selector.
   */
  scopeCache: CacheProgress | undefined;
  #isWhole = false;
  /**
   * Clock reading at which the response was accepted; 0: not accepted yet. In whole ms, rounded up, because V8 stores
   * small integers in the object itself, without another allocation.
   */
  acceptedAt = 0;
  /**
   * The bytes of an ERROR event that refuses the client's own request. The client gets them if no other backend accepts
   * the request.
   */
  refusal: Buffer | undefined;

  constructor(attempt: Attempt, taker: EventTaker, buffered: Buffered) {
    this.attempt = attempt;
    this.#taker = taker;
    this.#buffered = buffered;
  }

  /** Called when the request is sent, because the version that the request names is not known earlier. */
  open(reading: Reading): void {
    this.#reading = reading;
  }

  get reading(): Reading {
    return this.#reading;
  }

  get isOpened(): boolean {
    return this.#reading !== unread;
  }

  get isAccepted(): boolean {
    return this.#decoders !== undefined;
  }

  get answer(): "asked" | "answered" {
    return this.isAccepted ? "answered" : "asked";
  }

  accept(decoders: Decoders | undefined, now: number): void {
    this.#decoders = decoders;
    this.acceptedAt = Math.ceil(now);
  }

  /** Makes the stream's events count as progress of its backend's caches. */
  join(cache: CacheProgress, isWhole: boolean, scopeCache: CacheProgress | undefined): void {
    this.#isWhole = isWhole;
    this.cache = cache;
    this.scopeCache = scopeCache;
    const { from } = this.#reading;
    cache.join(isWhole, this.acceptedAt, from);
    scopeCache?.join(true, this.acceptedAt, from);
  }

  show(version: string, now: number): void {
    this.cache?.showEvent(version, now);
    this.scopeCache?.showEvent(version, now);
  }

  /**
   * True if no event of the stream is newer than `version`. All events of the stream may then belong to the etcd
   * history that ends at `version`.
   */
  isOfHistory(version: string): boolean {
    const { mark, bookmark, from, isOurs } = this.#reading;
    const shown = compareVersions(mark.version, bookmark) > 0 ? mark.version : bookmark;
    if (shown !== "") return compareVersions(shown, version) <= 0;
    return !isOurs && compareVersions(from, version) <= 0;
  }

  /**
   * True if the proxy requested the stream from a version that the etcd behind the stream's backend has not reached
   * (`isRewound`).
   */
  isRewound(now: number): boolean {
    const { from, isOurs, events } = this.#reading;
    if (!isOurs || events > 0 || this.cache === undefined) return false;
    return isRewound({ from, since: this.acceptedAt }, this.cache, now);
  }

  /** The code of an ERROR whose `Fate` is "refused"; otherwise 0. */
  get errorCode(): number {
    return this.#decoder?.code ?? 0;
  }

  /** Number of bytes of an incomplete event, and of events that wait for the first stream to deliver them. */
  get heldBytes(): number {
    return (this.#held?.length ?? 0) + (this.#ahead?.bytes ?? 0);
  }

  get isAhead(): boolean {
    return this.#ahead?.next !== undefined;
  }

  get nextAhead(): HeldEvent | undefined {
    return this.#ahead?.next;
  }

  /** True if too many events wait for the first stream. This stream is then dropped, and requested again later. */
  get isTooFarAhead(): boolean {
    const { count = 0, bytes = 0 } = this.#ahead ?? {};
    return count >= watchLimits.aheadEvents || bytes >= watchLimits.aheadBytes;
  }

  shiftAhead(): HeldEvent | undefined {
    const waiting = this.#ahead?.shift();
    if (waiting !== undefined) this.#buffered.add(-waiting.bytes.length);
    return waiting;
  }

  #keepAhead(event: WatchEvent, bytes: Buffer, start: number, end: number): void {
    this.#ahead ??= new Ahead();
    const before = this.#ahead.bytes;
    this.#ahead.push(event, this.#joined(bytes, start, end));
    this.#buffered.add(this.#ahead.bytes - before);
  }

  pass(bytes: Buffer, start: number, end: number): Passed {
    if (this.#decoders === undefined) return "all";
    if (this.#isOpaque) {
      this.#send(bytes, start, end);
      return "all";
    }
    this.#decoder ??= this.#decoders.take();
    const passed = this.#cut(this.#decoder, bytes, start, end);
    if (passed === "all" && this.#decoder.isWhole) {
      this.#decoders.giveBack(this.#decoder);
      this.#decoder = undefined;
    }
    return passed;
  }

  #cut(decoder: EventDecoder, bytes: Buffer, start: number, end: number): Passed {
    let from = start;
    let at = start;
    while (at < end) {
      const behind = decoder.next(bytes, at, end);
      if (behind === needsMore) break;
      if (behind === isOpaque) return this.#giveUp(bytes, from, end);
      const fate = this.#taker.take(decoder, this);
      if (fate !== "forward") {
        this.#send(bytes, from, at);
        if (fate === "refused") this.#keepRefusal(bytes, at, behind);
        if (fate === "hold") this.#keepAhead(decoder, bytes, at, behind);
        this.#drop(behind - at);
        from = behind;
        if (fate !== "drop" && fate !== "hold") return fate;
      }
      at = behind;
    }
    this.#send(bytes, from, at);
    this.#hold(bytes, at, end);
    return "all";
  }

  /** Keeps the bytes of an ERROR. The ERROR is the stream's first event, so all held bytes belong to it. */
  #keepRefusal(bytes: Buffer, start: number, end: number): void {
    if (!this.#reading.isOurs) this.refusal = this.#joined(bytes, start, end);
  }

  /** Returns a new Buffer with the held beginning of an event, followed by the bytes from `start` to `end`. */
  #joined(bytes: Buffer, start: number, end: number): Buffer {
    return this.#held?.joined(bytes, start, end) ?? Buffer.from(bytes.subarray(start, end));
  }

  /** Drops an incomplete event that will not be forwarded. */
  forget(): void {
    this.#held?.drop();
    this.#held = undefined;
  }

  cancel(): void {
    this.attempt.cancel(this.isAccepted);
    this.cache?.leave(this.#isWhole);
    this.scopeCache?.leave(true);
    this.cache = undefined;
    this.scopeCache = undefined;
    while (this.shiftAhead() !== undefined);
    this.forget();
  }

  #send(bytes: Buffer, start: number, end: number): void {
    if (start === end) return;
    this.#held?.moveTo((held) => this.#taker.release(held));
    this.#held = undefined;
    this.#taker.forward(bytes, start, end, this);
  }

  /**
   * Drops an event. Returns flow-control credit for the `count` bytes of the event that were not held. Held bytes got
   * their credit on receipt.
   */
  #drop(count: number): void {
    this.forget();
    this.attempt.up?.grant(count);
  }

  /**
   * Holds an incomplete event. Returns flow-control credit for it at once, because the event may be larger than the
   * window.
   */
  #hold(bytes: Buffer, start: number, end: number): void {
    if (start === end) return;
    this.#held ??= new AccountedBuffer(this.#buffered);
    this.#held.add(bytes, start, end);
    this.attempt.up?.grant(end - start);
  }

  #giveUp(bytes: Buffer, start: number, end: number): Passed {
    this.#isOpaque = true;
    this.#decoder = undefined;
    if (this.#taker.mayGoOn(this)) this.#send(bytes, start, end);
    return "opaque";
  }
}

type HeldEvent = { readonly event: WatchEvent; readonly bytes: Buffer };

/**
 * Whole events that a sentinel's second stream (D13) has delivered before the first stream. They are forwarded to the
 * client if the first stream is lost.
 */
export class Ahead {
  readonly #waiting: HeldEvent[] = [];
  #bytes = 0;

  get count(): number {
    return this.#waiting.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get next(): HeldEvent | undefined {
    return this.#waiting[0];
  }

  /** Copies the fields of `event`, because `event` is the decoder, whose fields change with the next event. */
  push(event: WatchEvent, bytes: Buffer): void {
    const { type, version, endsInitialEvents, code, reason, oldest, key } = event;
    // Of several bookmarks in a row, only the last is kept, because it covers the others.
    if (type === "BOOKMARK" && this.#waiting.at(-1)?.event.type === "BOOKMARK")
      this.#drop(this.#waiting.pop());
    this.#waiting.push({
      event: { type, version, endsInitialEvents, code, reason, oldest, key },
      bytes,
    });
    this.#bytes += bytes.length;
  }

  shift(): HeldEvent | undefined {
    const first = this.#waiting.shift();
    this.#drop(first);
    return first;
  }

  #drop(waiting: HeldEvent | undefined): void {
    this.#bytes -= waiting?.bytes.length ?? 0;
  }
}
