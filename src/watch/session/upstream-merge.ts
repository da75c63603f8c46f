/**
 * Merges the upstream streams of a watch, one or two, into one stream of events. The first stream serves the client.
 * The second stream is one of four: a hedge, the stream that will replace the first one, a stream for comparison (D13,
 * sentinels.ts), or a stream for a single bookmark. After the loss of the first stream, the second stream is the
 * attempt to continue on the next backend.
 */
import type { Clock } from "../../base/clock.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import type { RequestContext } from "../../proxy/context/request-context.ts";
import type { Attempt } from "../../proxy/upstream/attempt.ts";
import type { WatchEvent } from "../codec/event.ts";
import type { AnomalyLog, AnomalySource } from "./anomaly-log.ts";
import type { ClientWriter } from "./client-writer.ts";
import { expired } from "./expired-version.ts";
import type { ResumeRetry } from "./resume-retry.ts";
import type { Fate, Progress } from "./session-progress.ts";
import type { WatchContext } from "./watch-context.ts";
import { isMerging, type WatchInput, type WatchState } from "./watch-state.ts";
import type { EventTaker, WatchStream } from "./watch-stream.ts";

/** What a session reports about its requests to backends. `MovePace` implements it. */
export type WatchPace = {
  asked(backend: string): void;
  settled(backend: string): void;
  accepted(backend: string, ms: number): void;
  slowDown(): void;
};

/** What the merge uses of its session. `WatchSession` implements it. */
type MergeSession = {
  readonly state: WatchState;
  readonly progress: Progress;
  readonly writer: ClientWriter;
  /** Undefined until the watch looks for another backend for the first time. */
  readonly retry: Pick<ResumeRetry, "from" | "progressed"> | undefined;
  readonly asked: Omit<WatchContext, "target">;
  readonly clientRequest: RequestContext;
  readonly migrations: {
    readonly clock: Clock;
    readonly anomalies: AnomalyLog;
    /** Counts the requests for second streams that no backend has answered yet. */
    readonly pace: Pick<WatchPace, "asked" | "settled">;
  };
  dropSecond(): void;
};

export class UpstreamMerge implements EventTaker {
  readonly #session: MergeSession;
  /** Number of times that the watch has continued on another backend. */
  moves = 0;
  first: WatchStream | undefined;
  other: WatchStream | undefined;
  /** True if the second stream was requested for comparison (D13), even while it serves as a hedge. */
  isPosted = false;

  constructor(session: MergeSession) {
    this.#session = session;
  }

  /**
   * Returns the backend of the stream that will be the first one after `input`; without such a stream, the lost
   * backend.
   */
  nextBackend(input: WatchInput): string {
    const stream = input === "promote" ? this.other : this.first;
    return stream?.attempt.backend ?? this.#session.retry?.from ?? "";
  }

  begin(first: WatchStream): void {
    this.first = first;
  }

  add(other: WatchStream, isPosted: boolean): void {
    this.other = other;
    this.isPosted = isPosted;
    this.#session.migrations.pace.asked(other.attempt.backend);
  }

  of(attempt: Attempt): WatchStream | undefined {
    if (this.first?.attempt === attempt) return this.first;
    return this.other?.attempt === attempt ? this.other : undefined;
  }

  get heldBytes(): number {
    return (this.first?.heldBytes ?? 0) + (this.other?.heldBytes ?? 0);
  }

  /** True if events of both streams are forwarded, so that each event may arrive twice. */
  get isMerged(): boolean {
    return isMerging(this.#session.state) && this.other?.isAccepted === true;
  }

  /**
   * True while the second stream's events are only compared (D13). They are not forwarded, because they may belong to
   * another etcd history.
   */
  get isSentinel(): boolean {
    return this.#session.state === "sentinel";
  }

  get #isRefreshing(): boolean {
    return this.#session.state === "refreshing";
  }

  /**
   * Decides what happens to the second stream after bytes of `stream` have been read. stays: nothing changes. first:
   * the second stream becomes the first. drop: the second stream is dropped.
   */
  fateOfOther(stream: WatchStream): "stays" | "first" | "drop" {
    const { other } = this;
    if (other === undefined) return "stays";
    // If the client is slow, the second stream is dropped, because a slow client's watch must not keep two streams.
    const { isBlocked } = this.#session.writer;
    if (this.#isRefreshing) return isBlocked || other.reading.bookmark !== "" ? "drop" : "stays";
    if (stream === other && !this.isSentinel) return this.#hasSucceeded(other) ? "first" : "stays";
    return this.#isVain(other) ? "drop" : "stays";
  }

  /** True if the second stream is useless, because the client is slow or the watch has no version to continue from. */
  #isVain(other: WatchStream): boolean {
    const { writer, progress } = this.#session;
    if (other.isAccepted && writer.isBlocked) return true;
    return (!other.isAccepted || this.isSentinel) && progress.resumeVersion === undefined;
  }

  #hasSucceeded({ reading }: WatchStream): boolean {
    const { writer, state } = this.#session;
    return reading.events > 0 && (writer.isBlocked || state !== "hedged");
  }

  sourceOf({ attempt }: WatchStream): AnomalySource {
    const { clientRequest: context, asked } = this.#session;
    return { context, resource: asked.resource, backend: attempt.backend };
  }

  /**
   * Makes the second stream the first. Then forwards the events that this stream has delivered and the old first
   * stream has not. Returns false if one of these events does not follow the client's latest event.
   */
  promote(): boolean {
    this.first?.cancel();
    this.first = this.other;
    this.other = undefined;
    this.isPosted = false;
    this.moves += 1;
    this.#session.writer.change();
    return this.first === undefined || this.releaseAhead(this.first);
  }

  /**
   * Forwards the events of `stream` that were held until the first stream would deliver them, too. Returns false if one
   * of these events does not follow the client's latest event.
   */
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
    // Without a first stream, nothing can be compared. From now on, the second stream is the one that will replace the
    // lost stream.
    this.isPosted = false;
  }

  dropOther(): void {
    if (this.other?.isAccepted === false) this.#session.migrations.pace.settled(this.other.attempt.backend);
    this.other?.cancel();
    this.other = undefined;
    this.isPosted = false;
  }

  take(event: WatchEvent, from: WatchStream): Fate {
    const { progress, asked, migrations } = this.#session;
    const now = migrations.clock.now();
    const { versionRegressions, cursor } = progress;
    const isCompared = this.isSentinel;
    const fate = this.#fateOf(event, from, now);
    if (progress.versionRegressions !== versionRegressions)
      migrations.anomalies.outdated(this.sourceOf(from), event, cursor);
    const { type, version } = event;
    if (type === "BOOKMARK" || type === "ERROR") this.#updateCache(event, from, now);
    else from.show(version, now);
    if (fate === "forward") asked.seenVersion?.raise(version);
    if (isCompared && from === this.first) this.#confirm(now);
    this.#countProgress(fate, cursor);
    return fate;
  }

  #fateOf(event: WatchEvent, from: WatchStream, now: number): Fate {
    const { progress } = this.#session;
    if (from === this.other && this.isSentinel) return this.#compare(event, from, now);
    // Two kinds of bookmarks do not show that the first stream gets a bookmark every minute: the bookmark of a stream
    // that was opened only to get it, and the one that ends the initial events. The first stream gets no further
    // bookmark until its cache has moved past the version at which the stream began, and that may take long (W5).
    const isRegular = (from === this.first || !this.#isRefreshing) && !event.endsInitialEvents;
    progress.arrived(event.type, now, isRegular);
    return progress.take(event, from.reading, this.isMerged, now);
  }

  /** Holds an event of a sentinel's second stream (D13) until the first stream delivers it, too. */
  #compare(event: WatchEvent, from: WatchStream, now: number): Fate {
    const { progress } = this.#session;
    if (event.type !== "ERROR" && progress.isAhead(event, from.reading)) {
      // The event is newer than the client's latest event. The second stream should have delivered that latest event
      // earlier. If not, the second stream has skipped it.
      if (!from.isAhead && !progress.isShownBy(from.reading)) this.#reportUnlike(progress.cursor);
      else if (!from.isTooFarAhead) return "hold";
      return "broken";
    }
    // `arrived` is not called, because an event of the second stream does not end the first stream's silence.
    return progress.take(event, from.reading, true, now);
  }

  /** Called after the first stream has delivered an event. Drops the second stream if it has skipped that event. */
  #confirm(now: number): void {
    const { other } = this;
    const { progress } = this.#session;
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
    this.#session.dropSecond();
  }

  /**
   * Reports that the events of two backends differ. Ignores watches with a selector, because two Kubernetes releases
   * may evaluate a selector differently.
   */
  #reportUnlike(version: string): void {
    const { asked, migrations } = this.#session;
    const isProof = asked.scope !== "" && !asked.isRepeating;
    if (isProof && this.first !== undefined && this.other !== undefined)
      migrations.anomalies.unlike(this.sourceOf(this.first), this.other.attempt.backend, version);
  }

  /**
   * A bookmark counts as progress even if it is not forwarded, because it shows that all events up to its version have
   * arrived (watch.md §5.2).
   */
  #countProgress(fate: Fate, before: string | undefined): void {
    const { progress, retry } = this.#session;
    if (fate === "forward" || progress.cursor !== before) retry?.progressed();
  }

  #updateCache(event: WatchEvent, from: WatchStream, now: number): void {
    const { seenVersion } = this.#session.asked;
    if (event.type === "BOOKMARK") from.cache?.showBookmark(event, now);
    else if (event.code === 504) seenVersion?.refused();
    else if (event.code === expired) from.cache?.refuse(from.reading.from, event.oldest);
    if (event.endsInitialEvents) seenVersion?.shown(event.version);
  }

  mayGoOn(from: WatchStream): boolean {
    return from === this.first;
  }

  forward(bytes: Buffer, start: number, end: number, from: WatchStream): void {
    // While two streams are merged, bytes sent to the client cannot be attributed to one of them, so flow-control
    // credit is returned on receipt. That is safe, because a slow client's watch does not keep two streams for long.
    if (this.isMerged) {
      this.#session.writer.prepaid(end - start);
      from.attempt.up?.grant(end - start);
    }
    this.#session.writer.send(bytes, start, end);
  }

  /** Sends held bytes. Their flow-control credit was returned on receipt, so sending them returns no credit again. */
  release(held: Buffer): void {
    this.#session.writer.prepaid(held.length);
    this.#session.writer.send(held, 0, held.length);
  }
}
