/**
 * Merges the upstream streams of a watch, one or two, into one stream of events. The first stream serves the client.
 * The second stream is a hedge, the successor of the first, the stream of a sentinel (detectors/sentinels.ts), or open
 * for one bookmark. If the first stream is lost, the second one is the attempt at the next backend.
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

type UpstreamMergeParts = {
  readonly clock: Clock;
  readonly progress: Progress;
  readonly writer: ClientWriter;
  readonly retry: ResumeRetry;
  readonly asked: Omit<WatchContext, "target">;
  readonly anomalies: AnomalyLog;
  readonly context: RequestContext;
  readonly session: { readonly state: WatchState; dropSecond(): void };
};

export class UpstreamMerge implements EventTaker {
  readonly #parts: UpstreamMergeParts;
  /** Number of times that the watch continued on another backend. */
  moves = 0;
  first: WatchStream | undefined;
  other: WatchStream | undefined;
  /** True if the second stream was requested for comparison (sentinels.ts), even while it serves as a hedge. */
  isPosted = false;

  constructor(parts: UpstreamMergeParts) {
    this.#parts = parts;
  }

  begin(first: WatchStream): void {
    this.first = first;
  }

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

  /** True if events of both streams may be forwarded, so that each event may come twice. */
  get isMerged(): boolean {
    return isMerging(this.#parts.session.state) && this.other?.isAccepted === true;
  }

  /** True while the second stream's events are only compared, because they may be of another etcd history. */
  get isSentinel(): boolean {
    return this.#parts.session.state === "sentinel";
  }

  get #isRefreshing(): boolean {
    return this.#parts.session.state === "refreshing";
  }

  /** Returns what to do with the second stream, now that `stream` has delivered something. */
  fateOfOther(stream: WatchStream): "stays" | "first" | "drop" {
    const { other } = this;
    if (other === undefined) return "stays";
    // A slow client must not keep two streams.
    const { isBlocked } = this.#parts.writer;
    if (this.#isRefreshing) return isBlocked || other.reading.bookmark !== "" ? "drop" : "stays";
    if (stream === other && !this.isSentinel) return this.#hasSucceeded(other) ? "first" : "stays";
    return this.#isVain(other) ? "drop" : "stays";
  }

  /** True if the second stream is useless: the client is slow, or there is no version to continue from. */
  #isVain(other: WatchStream): boolean {
    const { writer, progress } = this.#parts;
    if (other.isAccepted && writer.isBlocked) return true;
    return (!other.isAccepted || this.isSentinel) && progress.resumeVersion === undefined;
  }

  #hasSucceeded({ reading }: WatchStream): boolean {
    const { writer, session } = this.#parts;
    return reading.events > 0 && (writer.isBlocked || session.state !== "hedged");
  }

  sourceOf({ attempt }: WatchStream): AnomalySource {
    const { context, asked } = this.#parts;
    return { context, resource: asked.resource, backend: attempt.backend };
  }

  /** Makes the second stream the first. Returns the result of `releaseAhead`. */
  promote(): boolean {
    this.first?.cancel();
    this.first = this.other;
    this.other = undefined;
    this.isPosted = false;
    this.moves += 1;
    this.#parts.writer.change();
    return this.first === undefined || this.releaseAhead(this.first);
  }

  /** Forwards events that waited for the first stream. Returns false if one does not follow the client's last event. */
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
    // Without a first stream there is no comparison any more. The second stream is to replace the first.
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
    // If a second stream was opened for a bookmark, that bookmark does not show that the first stream has bookmarks.
    progress.arrived(event.type, now, from === this.first || !this.#isRefreshing);
    return progress.take(event, from.reading, this.isMerged, now);
  }

  /** Holds an event of a sentinel's second stream until the first stream delivers that event, too. */
  #compare(event: WatchEvent, from: WatchStream, now: number): Fate {
    const { progress } = this.#parts;
    if (event.type !== "ERROR" && progress.isAhead(event, from.reading)) {
      // If the second stream, which is past the client's last event, has not delivered that event, it never will.
      if (!from.isAhead && !progress.isShownBy(from.reading)) this.#reportUnlike(progress.cursor);
      else if (!from.isTooFarAhead) return "hold";
      return "broken";
    }
    // `arrived` is not called, because an event of the second stream does not end the silence of the first one.
    return progress.take(event, from.reading, true, now);
  }

  /** Called after the first stream has delivered an event. Drops a second stream that has skipped the event. */
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

  /** Reports differing events, except of a watch with a selector, which two releases may evaluate differently. */
  #reportUnlike(version: string): void {
    const { asked, anomalies } = this.#parts;
    const isProof = asked.scope !== "" && !asked.isRepeating;
    if (isProof && this.first !== undefined && this.other !== undefined)
      anomalies.unlike(this.sourceOf(this.first), this.other.attempt.backend, version);
  }

  /** An injected bookmark counts as progress, too: all events up to its version have arrived (watch.md §5.2). */
  #countProgress(fate: Fate, before: string | undefined): void {
    const { progress, retry } = this.#parts;
    if (fate === "forward" || progress.cursor !== before) retry.progressed();
  }

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
    // While two upstreams are merged, sent bytes cannot be attributed to one of them, so flow-control credit is
    // returned on receipt. That is safe, because a slow client does not keep two streams for long.
    if (this.isMerged) {
      this.#parts.writer.prepaid(end - start);
      from.attempt.up?.grant(end - start);
    }
    this.#parts.writer.send(bytes, start, end);
  }

  /** Sends bytes whose flow-control credit was returned on receipt, so that they give no credit again. */
  release(held: Buffer): void {
    this.#parts.writer.prepaid(held.length);
    this.#parts.writer.send(held, 0, held.length);
  }
}
