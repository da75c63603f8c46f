/**
 * A watch that outlives its backend. Its legs tell what they hear; Progress says which events go on, the verdict on an
 * ending what follows, Moves where and when (watch.md §5). The client has one stream, and knows of nothing.
 *
 *     one leg ──suspected──▶ with a shadow, merged ──cleared──▶ one leg
 *        │                        │ lost
 *        │ leaving                ▼
 *        ├──▶ with a successor ─▶ one leg, elsewhere
 *        └ lost ─▶ asked anew ───▶      or the end, between two events
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import type { Buffered } from "../../h2/core/buffered.ts";
import type { Field } from "../../h2/core/field.ts";
import { lost } from "../../h2/core/protocol-error.ts";
import type { Origin } from "../../kube/api-origin.ts";
import {
  type Acceptance,
  type Answer,
  acceptanceOf,
  acceptanceOfError,
  isInitialising,
} from "../../kube/resume-request.ts";
import type { Client } from "../../proxy/context/client.ts";
import type { Order } from "../../proxy/context/order.ts";
import { isCredentialOver } from "../../proxy/identity/credential-expiry.ts";
import { Leg, type LegOwner } from "../../proxy/upstream/leg.ts";
import type { PoolKey } from "../../proxy/upstream/pool-key.ts";
import { decoderFor } from "../codec/framing.ts";
import type { Complaints } from "./complaints.ts";
import { isDeadline, type Over, verdictOn } from "./ending.ts";
import { Outlet } from "./outlet.ts";
import { Progress } from "./progress.ts";
import { Pursuit } from "./pursuit.ts";
import { Reading } from "./reading.ts";
import { WatchEnd } from "./watch-end.ts";
import type { WatchHost } from "./watch-host.ts";
import { WatchLeg } from "./watch-leg.ts";
import { WatchLegs } from "./watch-legs.ts";
import { answerOf, listOrder, orderAt, type WatchOrder } from "./watch-order.ts";
import { type AskReason, type EndReason, endReason, type LeaveReason, moveReason } from "./watch-reasons.ts";

/** Which backends a watch may go to: `Destinations` implements it. */
export type WatchTargets = {
  isLeaving(leg: Leg): boolean;
  isDoubtful(backend: string): boolean;
  isServedNowhere(notServing: readonly string[]): boolean;
  isForgotten(watching: Watching): boolean;
  mayEnd(watching: Watching): boolean;
  isInVain(watching: Watching, leg: Leg): boolean;
  isAlone(watching: Watching, leg: Leg): boolean;
};

/** What decides when a watch moves, and counts it: `Moves` implements it. */
export type WatchMoves = {
  readonly clock: Clock;
  /** Stands still while our own event loop does. */
  readonly patience: Clock;
  readonly complaints: Complaints;
  readonly where: WatchTargets;
  readonly watchings: {
    add(watching: Watching, asked: WatchOrder): void;
    remove(watching: Watching, asked: WatchOrder): void;
  };
  follow(side: WatchLeg, asked: WatchOrder): void;
  /** Asks for the watch elsewhere, at the latest after `inMs`; the function that it returns cancels that. */
  resume(watching: Watching, inMs: number): () => void;
  shadow(watching: Watching, leg: Leg): void;
  leave(watching: Watching, reason: LeaveReason): void;
  leaveLater(watching: Watching): void;
  flee(watching: Watching): void;
  slowDown(): void;
  moved(reason: AskReason, from: string, to: string, ms: number): void;
  ended(watching: Watching, reason: EndReason, from: string): void;
};

export type WatchParts = {
  readonly host: WatchHost;
  readonly moves: WatchMoves;
  readonly buffered: Buffered;
  readonly asked: WatchOrder;
  /** Of the answer that the client was given. */
  readonly contentType: string;
};

export class Watching implements LegOwner {
  readonly #parts: WatchParts;
  readonly progress: Progress;
  readonly #outlet: Outlet;
  readonly #pursuit: Pursuit;
  readonly legs: WatchLegs;
  readonly #ending: WatchEnd;

  constructor(parts: WatchParts, leg: Leg) {
    const { host, moves, buffered, asked } = parts;
    const { clock } = moves;
    this.#parts = parts;
    this.progress = new Progress({ ...asked, ...asked.request });
    this.#outlet = new Outlet(host.down, clock);
    this.#pursuit = new Pursuit(clock, moves.patience);
    const shared = { clock, progress: this.progress, outlet: this.#outlet, pursuit: this.#pursuit, asked };
    this.legs = new WatchLegs({ ...shared, complaints: moves.complaints, order: host.order });
    this.#ending = new WatchEnd({ host, progress: this.progress, legs: this.legs, pursuit: this.#pursuit });
    const first = new WatchLeg(leg, this.legs, buffered);
    first.open(new Reading(asked.request.version, false));
    this.#accept(first);
    this.legs.first = first;
    leg.owner = this;
    moves.watchings.add(this, asked);
    // It may have been told to go before it had an answer.
    if (moves.where.isLeaving(leg)) moves.leave(this, "draining");
  }

  // --- what its exchange asks of it ---

  /** Where its events come from. */
  get leg(): Leg | undefined {
    return this.legs.first?.leg;
  }

  /** `count` octets have left for the client; returns how many of them are to be granted. */
  settle(count: number): number {
    return this.#outlet.settle(count);
  }

  /** We are going ourselves: its client is to go on elsewhere. */
  finish(): void {
    this.#end("drained");
  }

  /** Should its server have ended it by now? Has it missed its bookmarks? Asked every few seconds. */
  look(): void {
    const { moves } = this.#parts;
    const { leftMs } = this.legs.times;
    if (leftMs !== undefined && leftMs < -limits.overdueMs) {
      moves.ended(this, "deadline_missed", this.leg?.backend ?? this.#pursuit.from);
      this.#endAtDeadline();
    } else if (this.legs.stalledMs >= 0) this.#leaveStalled();
    else if (this.legs.isRewound) this.#end("version_rollback");
    else if (this.mayHaveTwo && this.legs.isHung) {
      // Another backend is asked as well: if that shows more, this one hung; if not, nothing was lost.
      this.legs.complain();
      moves.leave(this, "hung");
    }
  }

  /** One that nobody else takes ends at last: its client's next one begins at a backend that goes on. */
  #leaveStalled(): void {
    const { moves } = this.#parts;
    const isLate = this.legs.stalledMs > limits.caughtUpMs;
    if (this.legs.hasCompany) this.promote("stale");
    else if (this.mayHaveTwo) moves.flee(this);
    else if (isLate && this.progress.isReadable && moves.where.mayEnd(this)) this.#end("stale");
  }

  /** Nobody wants it any more. */
  cancel(): void {
    const { moves, asked } = this.#parts;
    moves.watchings.remove(this, asked);
    this.#pursuit.stop();
    this.legs.dropFirst();
    this.legs.dropOther();
  }

  // --- what Histories asks of it ---

  /** May a question be asked with its identity? */
  get mayAsk(): boolean {
    return !this.#isExpired;
  }

  /**
   * This backend has another history than clients have seen, which has come to `version`. What it has shown is taken back
   * by a reset, since client-go lists anew after one; a watch to which it has shown nothing goes on elsewhere.
   */
  leaveHistory(backend: string, version: string): void {
    const { first, other } = this.legs;
    if (other?.leg.backend === backend) this.#giveUp(other);
    if (first?.leg.backend !== backend) return;
    if (first.isOfHistory(version)) this.#parts.host.breaksOff();
    else this.#giveUp(first);
  }

  /** No backend has what its client has seen: it has to list anew. */
  forgetHistory(): void {
    this.#parts.host.breaksOff();
  }

  // --- what Moves asks of it ---

  get client(): Client {
    return this.#parts.host.order.client;
  }

  /** Backends that were asked in vain since the first leg was lost. */
  get tried(): readonly string[] {
    return this.#pursuit.tried;
  }

  /** May it have a second leg? */
  get mayHaveTwo(): boolean {
    const isOver = this.#pursuit.isDeclined || this.#pursuit.isClosed;
    return !isOver && this.legs.mayBeTwo && !this.#isExpired;
  }

  /** Is its client's token over, or its certificate? Then the client has to show its new one itself (watch.md §8). */
  get #isExpired(): boolean {
    return isCredentialOver(this.#parts.host.order, this.#parts.moves.clock.wall());
  }

  /** A list of what it watches, under its own identity (`listOrder`). */
  listed(least?: string): Order | undefined {
    const { host, asked } = this.#parts;
    return listOrder(host.order, asked, least);
  }

  /** Its API was taken for another server's, and is not: from now on it is followed like any other. */
  isOwnAfterAll(origin: Origin): void {
    const { asked, moves } = this.#parts;
    if (asked.origin !== origin || this.#pursuit.isClosed) return;
    moves.watchings.add(this, asked);
    if (this.legs.first !== undefined) moves.follow(this.legs.first, asked);
  }

  /** A backend answered a request with its identity. */
  learnt(status: number): void {
    this.#parts.host.learnt(status);
  }

  /** The next leg, to be dialled. */
  ask(backend: string, reason: AskReason): Leg {
    if (this.legs.isRenewing || this.legs.isSentinel) this.legs.dropOther();
    const leg = new Leg(backend, this);
    const other = new WatchLeg(leg, this.legs, this.#parts.buffered);
    const { first } = this.legs;
    this.legs.other = other;
    this.legs.isPosted = reason === "sentinel";
    if (first === undefined) this.#await(other);
    else this.#pursuit.begin(reason, first.leg.backend);
    return leg;
  }

  /** Nobody could be asked, or nobody knows its version. Is it too late to go on trying? Then it ends here. */
  isTooLate(isForgotten: boolean): boolean {
    if (this.legs.isPastDeadline) this.#ending.due();
    else if (isForgotten || this.#pursuit.isOver)
      this.#end(isForgotten ? "expired" : this.#pursuit.endReason);
    else return false;
    return true;
  }

  // --- what its legs tell ---

  /** As it is sent now: events may have come while a leg waited for its upstream connection. */
  get order(): Order {
    const { host, asked } = this.#parts;
    return orderAt(host.order, asked, this.progress.resumeVersion, this.legs.timesOfNext);
  }

  poolKey(): PoolKey {
    return this.#parts.host.poolKey();
  }

  legOpened(leg: Leg): void {
    this.legs.of(leg)?.open(new Reading(this.progress.resumeVersion ?? "", true));
  }

  legRefused(leg: Leg): void {
    this.#over(leg, "unanswered");
  }

  legHeaders(leg: Leg, fields: Field[], end: boolean): void {
    const side = this.legs.of(leg);
    if (side?.isAccepted === true) this.#over(leg, "ended");
    else if (side !== undefined && Number(fields[0]?.value) >= 200) this.#judge(side, fields, end);
  }

  legData(leg: Leg, bytes: Buffer, start: number, end: number, endStream: boolean): void {
    const side = this.legs.of(leg);
    if (side === undefined) return;
    const passed = end > start ? this.legs.read(side, bytes, start, end) : "all";
    if (passed === "all") this.#advanced(side);
    else if (passed === "refused") this.#refused(side, side.errorCode);
    else if (passed === "opaque" && side === this.legs.first) this.#lose();
    else this.#broken(side);
    if (endStream) this.#over(leg, "ended");
  }

  legSent(): void {}

  legGone(leg: Leg, code: number): void {
    if (code === lost) this.#lostUnanswered(this.legs.of(leg));
    this.#over(leg, "broken");
  }

  legSuspected(leg: Leg): void {
    const side = this.legs.of(leg);
    if (side === undefined || this.#endIfPastDeadline(side)) return;
    if (side === this.legs.other && !this.#parts.moves.where.isInVain(this, leg)) return;
    if (side === this.legs.other) {
      this.#lostUnanswered(side);
      this.#giveUp(side);
    } else if (this.heeds([])) return;
    else if (this.legs.isMerged && this.#pursuit.ms >= limits.shadowMs) this.promote();
    else this.#parts.moves.shadow(this, leg);
  }

  legPassed(): void {}

  legCleared(leg: Leg): void {
    if (leg !== this.leg) return;
    this.#pursuit.declined(0);
    if (this.#pursuit.reason !== "suspect") return;
    if (this.legs.isPosted && this.legs.first !== undefined) this.#pursuit.begin("sentinel", leg.backend);
    else this.legs.dropOther();
  }

  legLeaving(leg: Leg): void {
    if (leg === this.leg) this.#parts.moves.leave(this, "draining");
  }

  legFaulted(error: unknown): void {
    this.#parts.host.legFaulted(error);
  }

  // --- what a second leg comes to ---

  #judge(side: WatchLeg, fields: readonly Field[], end: boolean): void {
    const { host, contentType } = this.#parts;
    const answer = answerOf(fields);
    host.learnt(answer.status);
    if (answer.status === 429) this.#busy(answer);
    if (answer.status === 404 && this.legs.first === undefined && this.#isGone(side.leg.backend))
      return this.#turnDown(side, { kind: "end" }, "not_found");
    const acceptance = acceptanceOf(answer, contentType);
    if (acceptance.kind !== "go") return this.#turnDown(side, acceptance, "refused");
    if (end) return this.#turnDown(side, { kind: "elsewhere", inMs: 0 }, "refused");
    this.#accept(side);
    // A successor has to show first that it knows the version: what it sends next may be an ERROR.
    if (this.legs.first === undefined) this.promote();
  }

  /** A cache that is being filled is waited for as long as a watch is tried, and is one resource's business. */
  #busy(answer: Answer): void {
    if (!isInitialising(answer)) this.#parts.moves.slowDown();
    else if (this.legs.first === undefined) this.#pursuit.uncount();
  }

  /** The last leg was answered 404: does no backend serve the resource any more? */
  #isGone(backend: string): boolean {
    this.#pursuit.unserved(backend);
    return this.#parts.moves.where.isServedNowhere(this.#pursuit.notServing);
  }

  #accept(side: WatchLeg): void {
    const { contentType, asked, moves } = this.#parts;
    side.accept(decoderFor(contentType, "", asked.isRepeating), moves.clock.now());
    moves.follow(side, asked);
  }

  /** Whole events came, or none. */
  #advanced(side: WatchLeg): void {
    const fate = this.legs.fateOfOther(side);
    if (fate === "first") this.promote();
    else if (fate === "drop") this.legs.dropOther();
  }

  /**
   * The first leg is in doubt: does a sentinel's second leg, at none of the backends in `except`, serve as its shadow
   * from now on? What it has shown before the first goes on at once.
   */
  heeds(except: readonly string[]): boolean {
    const { first, other, isSentinel } = this.legs;
    if (!isSentinel || first === undefined || other?.isAccepted !== true) return false;
    const { backend } = other.leg;
    if (except.includes(backend) || this.#parts.moves.where.isDoubtful(backend)) return false;
    this.#pursuit.begin("suspect", first.leg.backend);
    if (!this.legs.releaseAhead(other)) this.legs.dropOther();
    return true;
  }

  /** The other is the watch from now on. */
  promote(asked: AskReason = this.#pursuit.reason): void {
    const { moves, host } = this.#parts;
    const reason = asked === "sentinel" ? "lost" : asked;
    this.#leavePost(reason);
    const { from, ms } = this.#pursuit;
    const isFit = this.legs.promote();
    // The new leg has had no bookmark yet, and may have none for long.
    this.progress.lastBookmarkAt = -1;
    this.#pursuit.found();
    const backend = this.leg?.backend ?? "";
    host.goesOn(backend);
    if (reason !== "renewed") moves.moved(reason, from, backend, ms);
    if (!isFit && this.legs.first !== undefined) this.#broken(this.legs.first);
  }

  /** A sentinel's first leg is lost, or left: the search for the next begins now, and not when the second was asked. */
  #leavePost(reason: AskReason): void {
    if (this.#pursuit.reason === "sentinel")
      this.#pursuit.begin(reason, this.leg?.backend ?? this.#pursuit.from);
  }

  /** The bytes of the first leg are not what they claimed to be: they go on as they come, from here and nowhere else. */
  #lose(): void {
    this.progress.lose();
    this.legs.dropOther();
  }

  /** An ERROR of our own request, or of one of two. */
  #refused(side: WatchLeg, code: number): void {
    this.legs.letGo(side);
    const { first, other } = this.legs;
    if (side === first && other !== undefined) {
      this.legs.dropFirst();
      return this.#goOnWithOther(other);
    }
    const isLast = side === first || first === undefined;
    if (code === 410 && isLast) this.#pursuit.expired(side.leg.backend, side.refusal);
    const isForgotten = isLast && this.#parts.moves.where.isForgotten(this);
    this.#turnDown(side, acceptanceOfError(code, isForgotten), code === 410 ? "expired" : "refused");
  }

  #turnDown(side: WatchLeg, acceptance: Acceptance, reason: EndReason): void {
    const isCompared = this.legs.isSentinel && side === this.legs.other;
    const isPassing = acceptance.kind === "elsewhere";
    this.#drop(side);
    // A sentinel that is refused for now stands in no shadow's way.
    if (this.legs.first !== undefined) return isCompared && isPassing ? undefined : this.#decline(isPassing);
    this.#pursuit.inVain(side.leg.backend);
    if (isPassing) this.#resume(acceptance.inMs);
    else this.#end(reason);
  }

  /** It shows what it was not asked for, or leaves out what the other has shown. */
  #broken(side: WatchLeg): void {
    const isCompared = this.legs.isSentinel && side === this.legs.other;
    this.#drop(side);
    // The client was shown nothing of a sentinel's second leg.
    if (isCompared) return;
    if (this.legs.first === undefined) this.#end("out_of_order");
    else this.#decline(false);
  }

  /** The first leg goes on alone. `isPassing`: a cache that is being filled, say, takes the watch a little later. */
  #decline(isPassing: boolean): void {
    this.#pursuit.declined(isPassing ? limits.declinedMs : Number.POSITIVE_INFINITY);
    if (isPassing && this.#pursuit.reason === "draining") this.#parts.moves.leaveLater(this);
  }

  #await(side: WatchLeg): void {
    const isAlone = (): boolean => this.#parts.moves.where.isAlone(this, side.leg);
    this.#pursuit.untilAnswered(isAlone, () => this.#giveUp(side));
  }

  /** Its upstream connection is lost, or silent, before its answer. */
  #lostUnanswered(side: WatchLeg | undefined): void {
    const isOnly = side !== undefined && side === this.legs.other && this.legs.first === undefined;
    if (isOnly && side.isOpened && !side.isAccepted) this.#pursuit.lost();
  }

  #giveUp(side: WatchLeg): void {
    side.cancel();
    this.#over(side.leg, "broken");
  }

  #drop(side: WatchLeg): void {
    if (side === this.legs.first) this.legs.dropFirst();
    else this.legs.dropOther();
  }

  // --- what follows when a leg is over ---

  #over(leg: Leg, over: Over): void {
    const side = this.legs.of(leg);
    if (side === undefined) return;
    const isFirst = side === this.legs.first;
    this.legs.letGo(side);
    this.#drop(side);
    if (isFirst) return this.#firstOver(side, over);
    if (this.legs.first !== undefined) return this.#secondOver(over);
    this.#pursuit.inVain(leg.backend);
    this.#resume(side.isOpened ? 0 : this.#pursuit.unsent());
  }

  /**
   * The client's own deadline ends the watch whichever leg reports it: the first may be silent. Any other end of the second
   * changes nothing for the first. A second leg has a time limit of ours, so its end is never the server's timeout.
   */
  #secondOver(over: Over): void {
    if (over === "ended" && isDeadline(this.legs.times.leftMs)) this.#endAtDeadline();
    else if (this.#pursuit.reason === "draining") this.#decline(true);
  }

  /**
   * Ends the watch, and returns true, if the client's deadline has passed while the leg that would report it is silent: a
   * backend in a hole cannot, and while all are silent nothing else ends the watch (D14).
   */
  #endIfPastDeadline(side: WatchLeg): boolean {
    const { first, isPastDeadline } = this.legs;
    const isLast = first === undefined || side === first;
    if (!isLast || !isPastDeadline || !this.progress.isReadable) return false;
    this.#endAtDeadline();
    return true;
  }

  #endAtDeadline(): void {
    this.legs.dropFirst();
    this.#ending.due();
  }

  #firstOver({ leg, reading: { isOurs } }: WatchLeg, over: Over): void {
    const isDraining = over === "ended" && this.#parts.moves.where.isLeaving(leg);
    const ending = this.legs.ending({ over, isDraining, isOurs });
    const { kind } = verdictOn(ending);
    if (over === "broken" || isDraining) this.#pursuit.inVain(leg.backend);
    const { other } = this.legs;
    if (kind === "resume" && other !== undefined) {
      this.#leavePost(moveReason(over, isDraining));
      return this.#goOnWithOther(other);
    }
    this.legs.dropOther();
    this.#pursuit.begin(moveReason(over, isDraining), leg.backend);
    if (kind === "resume" || kind === "replay") this.#resume(0);
    else if (kind === "relay") this.#ending.due();
    else if (kind === "reset") this.#parts.host.breaksOff();
    else this.#end(endReason(ending));
  }

  /** The shadow is the watch now; or will be, if it is answered. */
  #goOnWithOther(other: WatchLeg): void {
    if (other.isAccepted) return this.promote();
    this.#pursuit.mayTry();
    this.#await(other);
  }

  #resume(inMs: number): void {
    if (this.legs.isPastDeadline) return this.#endAtDeadline();
    if (this.#isExpired) return this.#end("refused");
    if (!this.#pursuit.mayTry())
      return this.#end(this.#pursuit.isFruitless ? "no_progress" : this.#pursuit.endReason);
    this.#pursuit.waitFor(this.#parts.moves.resume(this, Math.min(inMs, this.#pursuit.leftMs)));
  }

  #end(reason: EndReason): void {
    this.#ending.early(() => this.#parts.moves.ended(this, reason, this.leg?.backend ?? this.#pursuit.from));
  }
}
