/**
 * One leg of a watch: its bytes, cut into whole events (D3). Those that go on are sent as they lie, as many together as
 * came together; half an event is held back until it is whole, so that a backend may die at any byte.
 */

import { AccountedBuffer } from "../../h2/core/accounted-buffer.ts";
import type { Buffered } from "../../h2/core/buffered.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import type { Attempt } from "../../proxy/upstream/attempt.ts";
import type { CacheProgress } from "../cache/cache-progress.ts";
import { watchLimits } from "../cache/limits.ts";
import { type EventDecoder, isOpaque, needsMore, type WatchEvent } from "../codec/event.ts";
import { Ahead, type Waiting } from "./sentinel-buffer.ts";
import type { Fate } from "./session-progress.ts";
import { Reading } from "./stream-progress.ts";

/** Who judges events, and sends them. */
export type EventTaker = {
  take(event: WatchEvent, from: WatchStream): Fate;
  /** This leg is not what it claimed to be: may its bytes go on as they are? */
  mayGoOn(from: WatchStream): boolean;
  /** `bytes[start, end)` are whole events, or of a stream that nobody understands. */
  forward(bytes: Buffer, start: number, end: number, from: WatchStream): void;
  /** The beginning of what is forwarded next. It was granted to its backend when it was held. */
  release(held: Buffer): void;
};

/** `opaque`: the stream is not what it claimed to be. The others are fates of an event, behind which nothing was read. */
export type Passed = "all" | "opaque" | "refused" | "broken";

/** Of all that have not been sent yet. */
const unread = new Reading("", true);

export class WatchStream {
  readonly attempt: Attempt;
  readonly #taker: EventTaker;
  readonly #held: AccountedBuffer;
  readonly #buffered: Buffered;
  /** Of a sentinel's second leg: what the first has not shown. Most watches never have one. */
  #ahead: Ahead | undefined;
  #decoder: EventDecoder | undefined;
  #isOpaque = false;
  #reading = unread;
  /** What its backend has shown of the resource; undefined before its answer, and for another server's resource. */
  cache: CacheProgress | undefined;
  /** And of the scope of its watch, where it sees all of one. */
  scopeCache: CacheProgress | undefined;
  #isWhole = false;
  /** When its answer was taken for this watch. */
  acceptedAt = 0;
  /** The ERROR that answers the client's own request, as it came, when another backend may know better. */
  refusal: Buffer | undefined;

  constructor(attempt: Attempt, taker: EventTaker, buffered: Buffered) {
    this.attempt = attempt;
    this.#taker = taker;
    this.#held = new AccountedBuffer(buffered);
    this.#buffered = buffered;
  }

  /** Its request goes up: only now it is known from which version. */
  open(reading: Reading): void {
    this.#reading = reading;
  }

  get reading(): Reading {
    return this.#reading;
  }

  get isOpened(): boolean {
    return this.#reading !== unread;
  }

  /** Was its answer taken for this watch? */
  get isAccepted(): boolean {
    return this.#decoder !== undefined;
  }

  accept(decoder: EventDecoder | undefined, now: number): void {
    this.#decoder = decoder;
    this.acceptedAt = now;
  }

  /** From now on it shows how far its backend has come. */
  join(cache: CacheProgress, isWhole: boolean, scopeCache: CacheProgress | undefined): void {
    this.#isWhole = isWhole;
    this.cache = cache;
    this.scopeCache = scopeCache;
    cache.join(isWhole, this.acceptedAt);
    scopeCache?.join(true, this.acceptedAt);
  }

  /** An event came on it. */
  show(version: string, now: number): void {
    this.cache?.showEvent(version, now);
    this.scopeCache?.showEvent(version, now);
  }

  /** Was what it has shown its client of a history that has come to `version` only? Then nothing of it is beyond that. */
  isOfHistory(version: string): boolean {
    const { mark, bookmark, from, isOurs } = this.#reading;
    const shown = compareVersions(mark.version, bookmark) > 0 ? mark.version : bookmark;
    if (shown !== "") return compareVersions(shown, version) <= 0;
    return !isOurs && compareVersions(from, version) <= 0;
  }

  /** Of the ERROR that came last; 0 when the last event was none. */
  get errorCode(): number {
    return this.#decoder?.code ?? 0;
  }

  /** Half an event, and what waits for the first leg to show it. */
  get heldBytes(): number {
    return this.#held.length + (this.#ahead?.bytes ?? 0);
  }

  // --- what waits for the first leg ---

  get isAhead(): boolean {
    return this.#ahead?.next !== undefined;
  }

  get nextAhead(): Waiting | undefined {
    return this.#ahead?.next;
  }

  /** True if no more may wait: the first leg is so far behind that this one is asked anew when it is needed. */
  get isTooFarAhead(): boolean {
    const { count = 0, bytes = 0 } = this.#ahead ?? {};
    return count >= watchLimits.aheadEvents || bytes >= watchLimits.aheadBytes;
  }

  shiftAhead(): Waiting | undefined {
    const waiting = this.#ahead?.shift();
    if (waiting !== undefined) this.#buffered.add(-waiting.bytes.length);
    return waiting;
  }

  #keepAhead(event: WatchEvent, bytes: Buffer, start: number, end: number): void {
    this.#ahead ??= new Ahead();
    const before = this.#ahead.bytes;
    this.#ahead.push(event, Buffer.concat([this.#held.peek(), bytes.subarray(start, end)]));
    this.#buffered.add(this.#ahead.bytes - before);
  }

  pass(bytes: Buffer, start: number, end: number): Passed {
    if (this.#decoder === undefined) return "all";
    if (!this.#isOpaque) return this.#cut(this.#decoder, bytes, start, end);
    this.#send(bytes, start, end);
    return "all";
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

  /** The first event, so what is held is the beginning of it. */
  #keepRefusal(bytes: Buffer, start: number, end: number): void {
    if (!this.#reading.isOurs) this.refusal = Buffer.concat([this.#held.peek(), bytes.subarray(start, end)]);
  }

  /** Half an event that nobody will see. */
  forget(): void {
    this.#held.take();
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

  /** Whole events, behind the half of the first one that was held. */
  #send(bytes: Buffer, start: number, end: number): void {
    if (start === end) return;
    if (this.#held.length > 0) this.#taker.release(this.#held.take());
    this.#taker.forward(bytes, start, end, this);
  }

  /** Its half is of no use either, and was granted when it was held. */
  #drop(count: number): void {
    this.forget();
    this.attempt.up?.grant(count);
  }

  /** An event may be larger than the stream's window: what is held is granted now, not when it leaves. */
  #hold(bytes: Buffer, start: number, end: number): void {
    if (start === end) return;
    this.#held.add(bytes, start, end);
    this.attempt.up?.grant(end - start);
  }

  #giveUp(bytes: Buffer, start: number, end: number): Passed {
    this.#isOpaque = true;
    if (this.#taker.mayGoOn(this)) this.#send(bytes, start, end);
    return "opaque";
  }
}
