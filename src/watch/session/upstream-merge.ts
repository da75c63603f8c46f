/**
 * The one or two upstream streams of a watch, merged into one stream of events. The client's events come from the first.
 * The other is a hedge or a successor; without a first, it is the attempt at the next backend.
 */
import type { Clock } from "../../base/clock.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import type { RequestContext } from "../../proxy/context/request-context.ts";
import type { Attempt } from "../../proxy/upstream/attempt.ts";
import type { WatchEvent } from "../codec/event.ts";
import type { AnomalyLog, AnomalySource } from "./anomaly-log.ts";
import type { ClientWriter } from "./client-writer.ts";
import type { ResumeRetry } from "./resume-retry.ts";
import type { Fate, Progress } from "./session-progress.ts";
import type { WatchContext } from "./watch-context.ts";
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

  begin(first: WatchStream): void {
    this.first = first;
  }

  /** `isPosted`: true if it was requested as a sentinel. */
  add(other: WatchStream, isPosted: boolean): void {
    this.other = other;
    this.isPosted = isPosted;
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

  get #isRefreshing(): boolean {
    return this.#parts.session.state === "refreshing";
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

  /** The watch as the journal names it, on this stream. */
  sourceOf({ attempt }: WatchStream): AnomalySource {
    const { context, asked } = this.#parts;
    return { context, resource: asked.resource, backend: attempt.backend };
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
    const { versionRegressions, cursor } = progress;
    const isCompared = this.isSentinel;
    const fate = this.#fateOf(event, from, now);
    if (progress.versionRegressions !== versionRegressions)
      anomalies.outdated(this.sourceOf(from), event, cursor);
    const { type, version } = event;
    if (type === "BOOKMARK" || type === "ERROR") this.#updateCache(event, from, now);
    else from.show(version, now);
    if (fate === "forward") asked.seenVersion?.raise(version);
    if (isCompared && from === this.first) this.#confirm(now);
    this.#countProgress(fate, cursor);
    return fate;
  }

  #fateOf(event: WatchEvent, from: WatchStream, now: number): Fate {
    const { progress } = this.#parts;
    if (from === this.other && this.isSentinel) return this.#compare(event, from, now);
    // The first stream may have no bookmarks: one that was requested elsewhere must not be expected here.
    progress.arrived(event.type, now, from === this.first || !this.#isRefreshing);
    return progress.take(event, from.reading, this.isMerged, now);
  }

  /** Takes an event of a sentinel's second stream: the client has it already, or the first stream has to deliver it first. */
  #compare(event: WatchEvent, from: WatchStream, now: number): Fate {
    const { progress } = this.#parts;
    if (event.type !== "ERROR" && progress.isAhead(event, from.reading)) {
      // It is past what was delivered last: it has delivered that already, or never will.
      if (!from.isAhead && !progress.isShownBy(from.reading)) this.#reportUnlike(progress.cursor);
      else if (!from.isTooFarAhead) return "hold";
      return "broken";
    }
    // Events of the second stream alone do not end the silence of the first: `arrived` is not called.
    return progress.take(event, from.reading, true, now);
  }

  /** The first stream has delivered something: what the second has delivered up to there must be the same. */
  #confirm(now: number): void {
    const { other } = this;
    const { progress } = this.#parts;
    if (other === undefined) return;
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
    isUnlike ||= other.isAhead && !progress.isShownBy(other.reading);
    if (!isUnlike) return;
    this.#reportUnlike(progress.cursor);
    this.#parts.session.dropSecond();
  }

  /** Only a stream of a whole scope is proof: apiservers of two versions may evaluate selectors differently. */
  #reportUnlike(version: string): void {
    const { asked, anomalies } = this.#parts;
    const isProof = asked.scope !== "" && !asked.isRepeating;
    if (isProof && this.first !== undefined && this.other !== undefined)
      anomalies.unlike(this.sourceOf(this.first), this.other.attempt.backend, version);
  }

  /** An injected bookmark also counts as progress: it proves more than was known (watch.md §5.2). */
  #countProgress(fate: Fate, before: string | undefined): void {
    const { progress, retry } = this.#parts;
    if (fate === "forward" || progress.cursor !== before) retry.progressed();
  }

  /** Takes what a backend states about its cache: bookmarks, and ERRORs 504 and 410. */
  #updateCache(event: WatchEvent, from: WatchStream, now: number): void {
    const { seenVersion } = this.#parts.asked;
    if (event.type === "BOOKMARK") from.cache?.showBookmark(event, now);
    else if (event.code === 504) seenVersion?.refused();
    else if (event.code === 410) from.cache?.refuse(from.reading.from, event.oldest);
    if (event.endsInitialEvents) seenVersion?.shown(event.version);
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

  /** Sends bytes that no stream is to be granted: they were granted on receipt. */
  release(held: Buffer): void {
    this.#parts.writer.prepaid(held.length);
    this.#parts.writer.send(held, 0, held.length);
  }
}
