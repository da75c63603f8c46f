/**
 * The one or two legs of a watch, merged into one stream of events. The first is where its client's events come from.
 * The other is its hedge or its successor; without a first, it is who was asked to be the next.
 */
import type { Clock } from "../../base/clock.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import type { RequestContext } from "../../proxy/context/request-context.ts";
import type { Attempt } from "../../proxy/upstream/attempt.ts";
import type { LagSuspicion } from "../cache/cache-progress.ts";
import { isHung, isRewound, wouldShow } from "../cache/coverage.ts";
import { watchLimits } from "../cache/limits.ts";
import type { WatchEvent } from "../codec/event.ts";
import type { AnomalyLog, AnomalySource } from "./anomaly-log.ts";
import type { ClientWriter } from "./client-writer.ts";
import { type Ending, endingOf } from "./end-verdict.ts";
import type { ResumeRetry } from "./resume-retry.ts";
import type { Fate, Progress } from "./session-progress.ts";
import { mayHaveBookmarks, type Times, timesOf, type WatchContext } from "./watch-context.ts";
import { isMerging, type WatchState } from "./watch-state.ts";
import type { EventTaker, WatchStream } from "./watch-stream.ts";

export type UpstreamMergeParts = {
  readonly clock: Clock;
  readonly progress: Progress;
  readonly writer: ClientWriter;
  readonly retry: ResumeRetry;
  readonly asked: Omit<WatchContext, "target">;
  readonly anomalies: AnomalyLog;
  /** The client's own. */
  readonly context: RequestContext;
  readonly session: { readonly state: WatchState; dropSecond(): void };
};

export class UpstreamMerge implements EventTaker {
  readonly #parts: UpstreamMergeParts;
  /** How often it went on elsewhere. */
  moves = 0;
  first: WatchStream | undefined;
  other: WatchStream | undefined;
  /** True if the other was asked as a sentinel (sentinels.ts), even while it serves as a hedge. */
  isPosted = false;

  constructor(parts: UpstreamMergeParts) {
    this.#parts = parts;
  }

  of(attempt: Attempt): WatchStream | undefined {
    if (this.first?.attempt === attempt) return this.first;
    return this.other?.attempt === attempt ? this.other : undefined;
  }

  get heldBytes(): number {
    return (this.first?.heldBytes ?? 0) + (this.other?.heldBytes ?? 0);
  }

  /** True if a second stream that was answered delivers the watch too: then every event may come twice. */
  get isMerged(): boolean {
    return isMerging(this.#parts.session.state) && this.other?.isAccepted === true;
  }

  /**
   * True while the other is only compared with the first: it goes on to the client from the first alone, so that no event
   * of another history does.
   */
  get isSentinel(): boolean {
    return this.#parts.session.state === "sentinel";
  }

  /** True if a second stream can be of use. Not for a client that reads slowly: its backend would give it up (watch.md §5.5). */
  get mayHedge(): boolean {
    const { progress, writer } = this.#parts;
    return progress.resumeVersion !== undefined && !writer.isBlocked;
  }

  get #isRefreshing(): boolean {
    return this.#parts.session.state === "refreshing";
  }

  /** Do only etcd and no cache know its versions? */
  get isRepeating(): boolean {
    return this.#parts.asked.isRepeating;
  }

  /** What becomes of the other, now that `side` has spoken? */
  fateOfOther(stream: WatchStream): "stays" | "first" | "drop" {
    const { other } = this;
    if (other === undefined) return "stays";
    // A client that has become slow meanwhile keeps the leg that speaks, and no more.
    const { isBlocked } = this.#parts.writer;
    if (this.#isRefreshing) return isBlocked || other.reading.bookmark !== "" ? "drop" : "stays";
    if (stream === other && !this.isSentinel) return this.#hasSucceeded(other) ? "first" : "stays";
    return this.#isVain(other) ? "drop" : "stays";
  }

  /** What the other was to be asked from, or is compared with, may not be known any more. */
  #isVain(other: WatchStream): boolean {
    const { writer, progress } = this.#parts;
    if (other.isAccepted && writer.isBlocked) return true;
    return (!other.isAccepted || this.isSentinel) && progress.resumeVersion === undefined;
  }

  #hasSucceeded({ reading }: WatchStream): boolean {
    const { writer, session } = this.#parts;
    return reading.events > 0 && (writer.isBlocked || session.state !== "hedged");
  }

  /** What is known when a leg is over. */
  ending(attempt: Pick<Ending, "over" | "isDraining" | "isOurs">): Ending {
    const { progress, retry, writer } = this.#parts;
    const how = { ...attempt, isRepeated: retry.hasEndedInVain, isBlocked: writer.isBlocked };
    return endingOf(progress, this.times, how);
  }

  get times(): Times {
    const { asked, progress, clock } = this.#parts;
    return timesOf(asked, progress.markerAt, clock.now());
  }

  /** True if the deadline that its client set has passed. */
  get isPastDeadline(): boolean {
    const { asked, clock } = this.#parts;
    const { timeoutMs } = asked.request;
    return timeoutMs !== undefined && clock.now() - asked.at >= timeoutMs;
  }

  /** As the next leg is told: one that is for a bookmark ends soon. */
  get timesOfNext(): Times {
    return this.#isRefreshing ? { ...this.times, leftMs: watchLimits.bookmarkRefreshMs } : this.times;
  }

  /**
   * True if a bookmark is possible, and is needed to prove that the watch is complete up to `at` (a clock reading).
   * `version` is etcd's at that time, undefined while that is not known and "" when it cannot be. A bookmark that came
   * since proves no more than its version says: a cache that etcd does not notify sends old ones.
   */
  isOlderThan(at: number, version: string | undefined): boolean {
    const { lastEventAt, lastChangeAt } = this.#parts.progress;
    const isSilent = (version === "" ? lastEventAt : lastChangeAt) < at;
    return (
      isSilent && this.mayBeRefreshed && (version === undefined || version === "" || this.isBehind(version))
    );
  }

  /** True if it has not come to this version. */
  isBehind(version: string): boolean {
    return compareVersions(this.#parts.progress.resumeVersion ?? "", version) < 0;
  }

  /** Would it have a bookmark if it were asked for once more, and the time for that? */
  get mayBeRefreshed(): boolean {
    const isShort = (this.times.leftMs ?? watchLimits.bookmarkRefreshMs) < watchLimits.bookmarkRefreshMs;
    return !isShort && mayHaveBookmarks(this.#parts.asked);
  }

  /** Has the first missed its bookmarks, although its client reads? */
  get isHung(): boolean {
    const { progress, writer, clock } = this.#parts;
    const { lastEventAt, lastBookmarkAt } = progress;
    return isHung({ lastEventAt, lastBookmarkAt, isBlocked: writer.isBlocked }, clock.now());
  }

  /** Tells that the first is hung. */
  complain(): void {
    const { clock, progress, anomalies } = this.#parts;
    if (this.first !== undefined)
      anomalies.hung(this.#sourceOf(this.first), clock.now() - progress.lastEventAt);
  }

  #sourceOf({ attempt }: WatchStream): AnomalySource {
    const { context, asked } = this.#parts;
    return { context, resource: asked.resource, backend: attempt.backend };
  }

  /** The version that its client asked from. */
  get askedFrom(): string {
    return this.#parts.asked.request.version;
  }

  /** Of which resource they are, as `resourceKey` has it. */
  get resource(): string {
    return this.#parts.asked.resource;
  }

  /** For how long it has been known that the first's backend stands still, in ms; -1 when it is not. */
  get stalledMs(): number {
    const cache = this.first?.cache;
    const now = this.#parts.clock.now();
    return cache?.stall !== undefined && cache.isStalled(now) ? now - cache.stall.since : -1;
  }

  /** Was the first asked by us to go on from a version that its backend's cache, which moves, is far from? */
  get isRewound(): boolean {
    const { first } = this;
    const isWaiting = first?.reading.isOurs === true && first.reading.events === 0;
    if (!isWaiting || first.cache === undefined || !this.#parts.progress.isReadable) return false;
    const coverage = { from: first.reading.from, since: first.acceptedAt };
    return isRewound(coverage, first.cache, this.#parts.clock.now());
  }

  /** Was the other taken, and did it say nothing against it in the same breath? */
  get isOtherSettled(): boolean {
    const { other } = this;
    return other?.isAccepted === true && this.#parts.clock.now() - other.acceptedAt > watchLimits.settledMs;
  }

  /** The first's backend stands still: is there another with which its client can go on at once? */
  get hasCompany(): boolean {
    const { retry, session } = this.#parts;
    if (this.isSentinel && this.other?.cache?.isStalled(this.#parts.clock.now()) === true) return false;
    return this.isOtherSettled && (retry.reason === "stale" || session.state === "hedged" || this.isSentinel);
  }

  /** Has a leg, which sees all of that scope and has been told its state, not shown for `afterMs` what others have? */
  isLate(suspicion: LagSuspicion, afterMs: number): boolean {
    const { progress, writer, clock, asked } = this.#parts;
    const hasState =
      progress.phase === "live" || (progress.phase === "opening" && asked.request.start === "exact");
    const attempt = this.#witnesses.find(({ scopeCache }) => scopeCache === suspicion.cache);
    if (attempt === undefined || !hasState || writer.isBlocked) return false;
    const coverage = {
      from: attempt.reading.from,
      since: attempt.acceptedAt,
      isWhole: true,
      hasBookmarks: false,
    };
    return wouldShow(coverage, suspicion, clock.now(), afterMs);
  }

  /** Does a leg show that its backend has not what others have shown? */
  testifies(suspicion: LagSuspicion): boolean {
    const { asked, progress, writer } = this.#parts;
    const attempt = this.#witnesses.find(({ cache }) => cache === suspicion.cache);
    if (attempt === undefined || progress.phase === "opaque" || writer.isBlocked) return false;
    const { isWhole, isInjected, isRepeating, request } = asked;
    // Those that its client did not want it has since it moved, or if they could be asked for at once.
    const hasOurs = isInjected && (attempt.reading.isOurs || request.start === "exact");
    const hasBookmarks = (request.hasBookmarks || hasOurs) && !isRepeating;
    const coverage = { from: attempt.reading.from, since: attempt.acceptedAt, isWhole, hasBookmarks };
    return wouldShow(coverage, suspicion, this.#parts.clock.now());
  }

  /** The legs by which a backend's cache is judged: the first, and a sentinel's second. */
  get #witnesses(): readonly WatchStream[] {
    return [this.first, this.isSentinel ? this.other : undefined].filter((attempt) => attempt !== undefined);
  }

  /** The other is the first from now on. What it has shown that the first had not goes on; false if that does not fit. */
  promote(): boolean {
    this.first?.cancel();
    this.first = this.other;
    this.other = undefined;
    this.isPosted = false;
    this.moves += 1;
    this.#parts.writer.change();
    return this.first === undefined || this.releaseAhead(this.first);
  }

  /** What waited for the first leg to show it goes on to the client; false if it does not fit what the client has. */
  releaseAhead(stream: WatchStream): boolean {
    for (let next = stream.shiftAhead(); next !== undefined; next = stream.shiftAhead()) {
      const fate = this.take(next.event, stream);
      if (fate === "forward") this.release(next.bytes);
      else if (fate !== "drop") return false;
    }
    return true;
  }

  dropFirst(): void {
    this.first?.cancel();
    this.first = undefined;
    // With the first gone there is nothing to compare with: the other is to replace it.
    this.isPosted = false;
  }

  dropOther(): void {
    this.other?.cancel();
    this.other = undefined;
    this.isPosted = false;
  }

  take(event: WatchEvent, from: WatchStream): Fate {
    const { progress, clock, asked, anomalies } = this.#parts;
    const now = clock.now();
    const { violations, cursor } = progress;
    const isCompared = this.isSentinel;
    const fate = this.#fateOf(event, from, now);
    if (progress.violations !== violations) anomalies.outdated(this.#sourceOf(from), event, cursor);
    const { type, version } = event;
    if (type === "BOOKMARK" || type === "ERROR") this.#takeWord(event, from, now);
    else from.show(version, now);
    if (fate === "forward") asked.recall?.raise(version);
    if (isCompared && from === this.first) this.#confirm(now);
    this.#countProgress(fate, cursor);
    return fate;
  }

  #fateOf(event: WatchEvent, from: WatchStream, now: number): Fate {
    const { progress } = this.#parts;
    if (from === this.other && this.isSentinel) return this.#compare(event, from, now);
    const { lastBookmarkAt } = progress;
    const fate = progress.take(event, from.reading, this.isMerged, now);
    // The first may have none: a bookmark that was asked for elsewhere must not be waited for here.
    if (from === this.other && this.#isRefreshing) progress.lastBookmarkAt = lastBookmarkAt;
    return fate;
  }

  /** An event of a sentinel's second leg: the client has it already, or has to be shown it by the first leg. */
  #compare(event: WatchEvent, from: WatchStream, now: number): Fate {
    const { progress } = this.#parts;
    if (event.type !== "ERROR" && progress.isAhead(event, from.reading)) {
      // It is beyond what was delivered last: it has shown that, or never will.
      if (!from.isAhead && !progress.isShownBy(from.reading)) this.#tellUnlike(progress.cursor);
      else if (!from.isTooFarAhead) return "hold";
      return "broken";
    }
    // What only the second leg shows says nothing of the silence of the first.
    const { lastEventAt, lastBookmarkAt } = progress;
    const fate = progress.take(event, from.reading, true, now);
    progress.lastEventAt = lastEventAt;
    progress.lastBookmarkAt = lastBookmarkAt;
    return fate;
  }

  /** The first leg has shown something: what the second has shown up to there has to be the same. */
  #confirm(now: number): void {
    const { other } = this;
    const { progress } = this.#parts;
    if (other === undefined) return;
    const { lastEventAt, lastBookmarkAt } = progress;
    let isUnlike = false;
    for (
      let next = other.nextAhead;
      next !== undefined && !progress.isAhead(next.event, other.reading);
      next = other.nextAhead
    ) {
      const { event } = next;
      isUnlike ||= event.type !== "BOOKMARK" && compareVersions(event.version, progress.cursor) < 0;
      progress.take(event, other.reading, true, now);
      other.shiftAhead();
    }
    progress.lastEventAt = lastEventAt;
    progress.lastBookmarkAt = lastBookmarkAt;
    isUnlike ||= other.isAhead && !progress.isShownBy(other.reading);
    if (!isUnlike) return;
    this.#tellUnlike(progress.cursor);
    this.#parts.session.dropSecond();
  }

  /** Only a leg that sees a whole scope proves it: selectors may be read differently by apiservers of two versions. */
  #tellUnlike(version: string): void {
    const { asked, anomalies } = this.#parts;
    const isProof = asked.scope !== "" && !asked.isRepeating;
    if (isProof && this.first !== undefined && this.other !== undefined)
      anomalies.unlike(this.#sourceOf(this.first), this.other.attempt.backend, version);
  }

  /** A bookmark that only we asked for is news as well: it proves more than was known (watch.md §5.2). */
  #countProgress(fate: Fate, before: string | undefined): void {
    const { progress, retry } = this.#parts;
    if (fate === "forward" || progress.cursor !== before) retry.progressed();
  }

  /** What a backend says of itself. */
  #takeWord(event: WatchEvent, from: WatchStream, now: number): void {
    const { recall } = this.#parts.asked;
    if (event.type === "BOOKMARK") from.cache?.showBookmark(event, now);
    else if (event.code === 504) recall?.refused();
    else if (event.code === 410) from.cache?.refuse(from.reading.from, event.oldest);
    if (event.endsInitialEvents) recall?.shown(event.version);
  }

  mayGoOn(from: WatchStream): boolean {
    return from === this.first;
  }

  forward(bytes: Buffer, start: number, end: number, from: WatchStream): void {
    // Of two legs nobody knows whose octets leave, so theirs are granted at once: who reads slowly has no two for long.
    if (this.isMerged) {
      this.#parts.writer.prepaid(end - start);
      from.attempt.up?.grant(end - start);
    }
    this.#parts.writer.send(bytes, start, end);
  }

  /** Octets that no leg is to be granted: they were when they came. */
  release(held: Buffer): void {
    this.#parts.writer.prepaid(held.length);
    this.#parts.writer.send(held, 0, held.length);
  }
}
