/**
 * The one or two upstream streams of a watch, merged into one stream of events. The client's events come from the first.
 * The other is a hedge or a successor; without a first, it is the attempt at the next backend.
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
  /** How often the watch continued on another backend. */
  moves = 0;
  first: WatchStream | undefined;
  other: WatchStream | undefined;
  /** True if the other was requested as a sentinel (sentinels.ts), even while it serves as a hedge. */
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

  /** True if a second stream that was answered delivers the watch, too: then every event may come twice. */
  get isMerged(): boolean {
    return isMerging(this.#parts.session.state) && this.other?.isAccepted === true;
  }

  /**
   * True while the other is only compared with the first: events are forwarded from the first alone, so that no event of
   * another history reaches the client.
   */
  get isSentinel(): boolean {
    return this.#parts.session.state === "sentinel";
  }

  /**
   * True if a second stream can be of use. False for a client that reads slowly: its backend would end the stream
   * (watch.md §5.5).
   */
  get mayHedge(): boolean {
    const { progress, writer } = this.#parts;
    return progress.resumeVersion !== undefined && !writer.isBlocked;
  }

  get #isRefreshing(): boolean {
    return this.#parts.session.state === "refreshing";
  }

  /** True if only etcd and no cache knows its versions. */
  get isRepeating(): boolean {
    return this.#parts.asked.isRepeating;
  }

  /** Returns what becomes of the other stream, now that `stream` has delivered something. */
  fateOfOther(stream: WatchStream): "stays" | "first" | "drop" {
    const { other } = this;
    if (other === undefined) return "stays";
    // A client that has become slow meanwhile keeps only the stream that delivers.
    const { isBlocked } = this.#parts.writer;
    if (this.#isRefreshing) return isBlocked || other.reading.bookmark !== "" ? "drop" : "stays";
    if (stream === other && !this.isSentinel) return this.#hasSucceeded(other) ? "first" : "stays";
    return this.#isVain(other) ? "drop" : "stays";
  }

  /** True if the version that the other should be requested from, or is compared with, may be unknown by now. */
  #isVain(other: WatchStream): boolean {
    const { writer, progress } = this.#parts;
    if (other.isAccepted && writer.isBlocked) return true;
    return (!other.isAccepted || this.isSentinel) && progress.resumeVersion === undefined;
  }

  #hasSucceeded({ reading }: WatchStream): boolean {
    const { writer, session } = this.#parts;
    return reading.events > 0 && (writer.isBlocked || session.state !== "hedged");
  }

  /** Collects what is known when a stream is over. */
  ending(attempt: Pick<Ending, "over" | "isDraining" | "isOurs">): Ending {
    const { progress, retry, writer } = this.#parts;
    const how = { ...attempt, isRepeated: retry.hasEndedInVain, isBlocked: writer.isBlocked };
    return endingOf(progress, this.times, how);
  }

  get times(): Times {
    const { asked, progress, clock } = this.#parts;
    return timesOf(asked, progress.markerAt, clock.now());
  }

  /** True if the deadline that the client set has passed. */
  get isPastDeadline(): boolean {
    const { asked, clock } = this.#parts;
    const { timeoutMs } = asked.request;
    return timeoutMs !== undefined && clock.now() - asked.at >= timeoutMs;
  }

  /** The times for the next stream's request: a stream for a bookmark has a short timeout. */
  get timesOfNext(): Times {
    return this.#isRefreshing ? { ...this.times, leftMs: watchLimits.bookmarkRefreshMs } : this.times;
  }

  /**
   * True if a bookmark is possible, and is needed to prove that the watch is complete up to `at` (a clock reading).
   * `version` is etcd's at that time, undefined while it is not known and "" if it cannot be. A bookmark that came since
   * proves no more than its version: a cache that etcd does not notify sends old ones.
   */
  isOlderThan(at: number, version: string | undefined): boolean {
    const { lastEventAt, lastChangeAt } = this.#parts.progress;
    const isSilent = (version === "" ? lastEventAt : lastChangeAt) < at;
    return (
      isSilent && this.mayBeRefreshed && (version === undefined || version === "" || this.isBehind(version))
    );
  }

  /** True if the watch has not reached this version. */
  isBehind(version: string): boolean {
    return compareVersions(this.#parts.progress.resumeVersion ?? "", version) < 0;
  }

  /** True if one more request would get a bookmark, and there is time for that. */
  get mayBeRefreshed(): boolean {
    const isShort = (this.times.leftMs ?? watchLimits.bookmarkRefreshMs) < watchLimits.bookmarkRefreshMs;
    return !isShort && mayHaveBookmarks(this.#parts.asked);
  }

  /** True if the first stream has missed its bookmarks although the client reads. */
  get isHung(): boolean {
    const { progress, writer, clock } = this.#parts;
    const { lastEventAt, lastBookmarkAt } = progress;
    return isHung({ lastEventAt, lastBookmarkAt, isBlocked: writer.isBlocked }, clock.now());
  }

  /** Journals that the first stream is hung. */
  complain(): void {
    const { clock, progress, anomalies } = this.#parts;
    if (this.first !== undefined)
      anomalies.hung(this.#sourceOf(this.first), clock.now() - progress.lastEventAt);
  }

  #sourceOf({ attempt }: WatchStream): AnomalySource {
    const { context, asked } = this.#parts;
    return { context, resource: asked.resource, backend: attempt.backend };
  }

  /** The version that the client requested. */
  get askedFrom(): string {
    return this.#parts.asked.request.version;
  }

  /** The resource, as `resourceKey` returns it. */
  get resource(): string {
    return this.#parts.asked.resource;
  }

  /** How long the cache of the first stream's backend has been known to be stalled, in ms; -1 if it is not. */
  get stalledMs(): number {
    const cache = this.first?.cache;
    const now = this.#parts.clock.now();
    return cache?.stall !== undefined && cache.isStalled(now) ? now - cache.stall.since : -1;
  }

  /** True if the proxy requested the first stream from a version that its backend's cache, which moves, is far from. */
  get isRewound(): boolean {
    const { first } = this;
    const isWaiting = first?.reading.isOurs === true && first.reading.events === 0;
    if (!isWaiting || first.cache === undefined || !this.#parts.progress.isReadable) return false;
    const coverage = { from: first.reading.from, since: first.acceptedAt };
    return isRewound(coverage, first.cache, this.#parts.clock.now());
  }

  /** True if the other was accepted, and no ERROR followed at once. */
  get isOtherSettled(): boolean {
    const { other } = this;
    return other?.isAccepted === true && this.#parts.clock.now() - other.acceptedAt > watchLimits.settledMs;
  }

  /** The cache of the first stream's backend is stalled. True if the client can continue on the other stream at once. */
  get hasCompany(): boolean {
    const { retry, session } = this.#parts;
    if (this.isSentinel && this.other?.cache?.isStalled(this.#parts.clock.now()) === true) return false;
    return this.isOtherSettled && (retry.reason === "stale" || session.state === "hedged" || this.isSentinel);
  }

  /**
   * True if a stream that sees the whole scope, and has its initial state, has not delivered for `afterMs` what others
   * have.
   */
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

  /** True if a stream proves that its backend lacks what others have delivered. */
  testifies(suspicion: LagSuspicion): boolean {
    const { asked, progress, writer } = this.#parts;
    const attempt = this.#witnesses.find(({ cache }) => cache === suspicion.cache);
    if (attempt === undefined || progress.phase === "opaque" || writer.isBlocked) return false;
    const { isWhole, isInjected, isRepeating, request } = asked;
    // Injected bookmarks come after a move, or from the beginning if the client's first request could carry the query.
    const hasOurs = isInjected && (attempt.reading.isOurs || request.start === "exact");
    const hasBookmarks = (request.hasBookmarks || hasOurs) && !isRepeating;
    const coverage = { from: attempt.reading.from, since: attempt.acceptedAt, isWhole, hasBookmarks };
    return wouldShow(coverage, suspicion, this.#parts.clock.now());
  }

  /** The streams by which a backend's cache is judged: the first, and a sentinel's second. */
  get #witnesses(): readonly WatchStream[] {
    return [this.first, this.isSentinel ? this.other : undefined].filter((attempt) => attempt !== undefined);
  }

  /** Makes the other stream the first. Forwards what only it has delivered; returns false if that does not fit. */
  promote(): boolean {
    this.first?.cancel();
    this.first = this.other;
    this.other = undefined;
    this.isPosted = false;
    this.moves += 1;
    this.#parts.writer.change();
    return this.first === undefined || this.releaseAhead(this.first);
  }

  /** Forwards the events that waited for the first stream. Returns false if they do not fit what the client has. */
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
    // Without the first stream there is nothing to compare with: the other should replace it.
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
    // The first stream may have no bookmarks: one that was requested elsewhere must not be expected here.
    if (from === this.other && this.#isRefreshing) progress.lastBookmarkAt = lastBookmarkAt;
    return fate;
  }

  /** Takes an event of a sentinel's second stream: the client has it already, or the first stream has to deliver it first. */
  #compare(event: WatchEvent, from: WatchStream, now: number): Fate {
    const { progress } = this.#parts;
    if (event.type !== "ERROR" && progress.isAhead(event, from.reading)) {
      // It is past what was delivered last: it has delivered that already, or never will.
      if (!from.isAhead && !progress.isShownBy(from.reading)) this.#tellUnlike(progress.cursor);
      else if (!from.isTooFarAhead) return "hold";
      return "broken";
    }
    // Events of the second stream alone do not end the silence of the first.
    const { lastEventAt, lastBookmarkAt } = progress;
    const fate = progress.take(event, from.reading, true, now);
    progress.lastEventAt = lastEventAt;
    progress.lastBookmarkAt = lastBookmarkAt;
    return fate;
  }

  /** The first stream has delivered something: what the second has delivered up to there must be the same. */
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

  /** Only a stream of a whole scope is proof: apiservers of two versions may evaluate selectors differently. */
  #tellUnlike(version: string): void {
    const { asked, anomalies } = this.#parts;
    const isProof = asked.scope !== "" && !asked.isRepeating;
    if (isProof && this.first !== undefined && this.other !== undefined)
      anomalies.unlike(this.#sourceOf(this.first), this.other.attempt.backend, version);
  }

  /** An injected bookmark also counts as progress: it proves more than was known (watch.md §5.2). */
  #countProgress(fate: Fate, before: string | undefined): void {
    const { progress, retry } = this.#parts;
    if (fate === "forward" || progress.cursor !== before) retry.progressed();
  }

  /** Takes what a backend states about its cache: bookmarks, and ERRORs 504 and 410. */
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
    // While two upstreams are merged, sent bytes cannot be attributed to one of them, so flow-control credit is returned
    // on receipt. That is safe, because a slow client does not keep two streams for long.
    if (this.isMerged) {
      this.#parts.writer.prepaid(end - start);
      from.attempt.up?.grant(end - start);
    }
    this.#parts.writer.send(bytes, start, end);
  }

  /** Sends octets that no stream is to be granted: they were granted on receipt. */
  release(held: Buffer): void {
    this.#parts.writer.prepaid(held.length);
    this.#parts.writer.send(held, 0, held.length);
  }
}
