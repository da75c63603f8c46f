/**
 * Decides which events of a watch the proxy forwards to the client, and from which version the watch can continue on
 * another backend (the table of watch.md §4; §5.6 for two streams). The phases of a watch:
 *
 *     opening ──▶ listing ──▶ live          any ──▶ opaque: undecodable
 *        └───────────────────▶              any ──▶ ended:  an ERROR went to the client
 */

import type { Origin } from "../../kube/api-origin.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import type { Start } from "../../kube/watch-request.ts";
import type { BackendCount, BackendCounts } from "../../upstream/pool/backend-counts.ts";
import type { EventType, WatchEvent } from "../codec/event.ts";
import { isHeldBack } from "./expired-version.ts";

export type Phase = "opening" | "listing" | "live" | "opaque" | "ended";

/**
 * Sums over all watches. They are updated with each event, because a scrape that visited 50,000 watches would block the
 * event loop.
 */
export type WatchTally = {
  /** Forwarded events, counted by the backend whose stream delivered them. */
  readonly events: BackendCounts<"event">;
  versionRegressions: number;
  /** Number of bytes sent to clients. `exchange.ts` counts them. */
  bytes: number;
  readonly phases: Record<Phase, number>;
};

/**
 * What happens to an event. drop: the client has the event already, or did not request it. hold: the event waits until
 * the first stream delivers it, too. refused: the event is an ERROR that does not go to the client now. It may answer
 * something that only the proxy requested, or it is a 410 to the client's request while another backend may have the
 * version. broken: the stream does not deliver what was requested.
 */
export type Fate = "forward" | "drop" | "hold" | "refused" | "broken";

export type ProgressOptions = {
  readonly start: Start;
  /** The version after which the watch starts, if `start` is "exact". */
  readonly version: string;
  /**
   * True if the client waits for the bookmark that ends its initial events. A stream that resumes from a version would
   * not send it.
   */
  readonly awaitsMarker?: boolean;
  /** True if several events may have the same version (`events`, whose etcd leases expire in batches). */
  readonly isRepeating: boolean;
  /**
   * The server that assigns the versions. `isForeign`: true if it is an aggregated server, or if it is unknown which
   * server it is.
   */
  readonly origin: Pick<Origin, "isForeign">;
  /** True if the proxy requested bookmarks that the client did not want. Such bookmarks are never forwarded. */
  readonly isInjected: boolean;
};

export class Progress {
  readonly #options: ProgressOptions;
  #phase: Phase = "opening";
  /** The sums that include this watch; undefined before `countIn` and after `countOut`. */
  #tally: WatchTally | undefined;
  /** Version of the newest event or bookmark; "": not known. More events of this version may follow. */
  #cursor: string;
  /** The previous value of `#cursor`: all events up to this version have arrived. */
  #previous = "";
  /** True if no further event can have the same version as the latest event (`#cursor`). */
  #isComplete: boolean;
  #isRepeating: boolean;
  /** True after an event that is out of order, or has no version, was forwarded. The watch can then no longer move. */
  #isLost = false;
  #delivered = noMark;
  /** Number of events forwarded since the client's request, bookmarks included. */
  events = 0;
  /** Number of events forwarded since the initial events ended, bookmarks included. */
  liveEvents = 0;
  /** Number of events older than an event that the same stream had already delivered (incident 001). */
  #versionRegressions = 0;
  /** Clock reading of the latest event or bookmark; -1: none yet. */
  lastEventAt = -1;
  /** Clock reading of the first stream's latest bookmark after its initial events; -1: none yet. */
  lastBookmarkAt = -1;
  /** Clock reading of the latest event that was no bookmark; -1: none yet. */
  lastChangeAt = -1;
  /** Clock reading at which the initial events ended; -1: not yet. */
  markerAt = -1;

  constructor(options: ProgressOptions) {
    this.#options = options;
    this.#cursor = options.start === "exact" ? options.version : "";
    this.#isComplete = options.start === "exact";
    this.#isRepeating = options.isRepeating;
  }

  get start(): Start {
    return this.#options.start;
  }

  get phase(): Phase {
    return this.#phase;
  }

  set phase(phase: Phase) {
    if (this.#tally !== undefined) {
      this.#tally.phases[this.#phase] -= 1;
      this.#tally.phases[phase] += 1;
    }
    this.#phase = phase;
  }

  get versionRegressions(): number {
    return this.#versionRegressions;
  }

  set versionRegressions(count: number) {
    if (this.#tally !== undefined) this.#tally.versionRegressions += count - this.#versionRegressions;
    this.#versionRegressions = count;
  }

  /** Adds this watch, with the events that it has had so far from its only stream, to `tally`. */
  countIn(tally: WatchTally, backend: string): void {
    this.#tally = tally;
    tally.phases[this.#phase] += 1;
    tally.events.of(backend, "event").add(this.events);
    tally.versionRegressions += this.#versionRegressions;
  }

  /** Removes this watch from the count of its phase. Its events stay counted. */
  countOut(): void {
    if (this.#tally !== undefined) this.#tally.phases[this.#phase] -= 1;
    this.#tally = undefined;
  }

  get cursor(): string {
    return this.#cursor;
  }

  /**
   * The version from which another backend can continue, so that no event is missing or repeated; undefined: none. If
   * more events of the newest version may follow, the result is the version before the newest.
   */
  get resumeVersion(): string | undefined {
    const isOrdered = this.phase === "live" || (this.phase === "opening" && this.start === "exact");
    if (!isOrdered || this.#isLost || this.#options.origin.isForeign) return undefined;
    const version = this.#isRepeating && !this.#isComplete ? this.#previous : this.#cursor;
    return version === "" ? undefined : version;
  }

  /** True if the stream can be decoded, so that the proxy can end it between two events. */
  get isReadable(): boolean {
    return this.phase !== "opaque";
  }

  /** Called when the stream is not in the format of its content type. From now on the watch is opaque. */
  lose(): void {
    if (this.phase !== "ended") this.phase = "opaque";
  }

  /**
   * True if the client has not received this event. `mark`: the latest events of the stream that has delivered this
   * event.
   */
  isAhead({ version }: Pick<WatchEvent, "version">, { mark }: Reading): boolean {
    const ahead = compareVersions(version, this.#cursor);
    if (ahead !== 0) return ahead > 0;
    return !this.#isComplete && mark.version === version && mark.count >= this.#delivered.count;
  }

  /**
   * True if the stream has delivered the latest events that the client has received, or starts after them. Otherwise
   * the stream has skipped those events and will not deliver them later.
   */
  isShownBy(reading: Reading): boolean {
    return reading.hasReached(this.#delivered);
  }

  /**
   * Records when an event came. `isRegular`: false for a bookmark that is not part of the periodic series, so that the
   * next bookmark need not follow within a minute.
   */
  arrived(type: EventType, now: number, isRegular: boolean): void {
    if (type === "ERROR") return;
    this.lastEventAt = now;
    if (type !== "BOOKMARK") this.lastChangeAt = now;
    else if (isRegular) this.lastBookmarkAt = now;
  }

  /**
   * Called when the second stream becomes the first. Forgets the previous stream's bookmarks, because the first
   * bookmark of the new stream may come much later than a minute.
   */
  promoted(): void {
    this.lastBookmarkAt = -1;
  }

  /**
   * Decides what happens to the next whole event of a stream. `isMerged`: true if two streams deliver this watch's
   * events.
   */
  take(event: WatchEvent, reading: Reading, isMerged: boolean, now: number): Fate {
    reading.events += 1;
    if (event.type === "ERROR") return this.#error(event, reading, isMerged);
    const fate = this.#fate(event, reading, isMerged);
    // The client did not request this bookmark, so it is dropped even if the bookmark's version is not trusted.
    if (this.#options.isInjected && event.type === "BOOKMARK") return fate === "forward" ? "drop" : fate;
    if (fate === "forward") this.#count(reading);
    // client-go starts its own counts of events and of time at this bookmark.
    if (event.endsInitialEvents) this.#endInitialEvents(now);
    return fate;
  }

  #error(event: WatchEvent, reading: Reading, isMerged: boolean): Fate {
    const isFirst = reading.events === 1;
    if (isMerged || (isFirst && reading.isOurs)) return "refused";
    if (isFirst && this.phase === "opening" && (this.#mayAnswerOurs || isHeldBack(event, this.#refused)))
      return "refused";
    this.phase = "ended";
    this.#count(reading);
    return "forward";
  }

  /**
   * True if an ERROR may refuse the bookmarks that only the proxy requested, and not the client's request. An apiserver
   * refuses bookmarks if the watch also requests initial events and etcd does not support progress requests (apiserver
   * storage/cacher, Watch).
   */
  get #mayAnswerOurs(): boolean {
    return this.#options.isInjected && this.start === "state";
  }

  get #refused(): Parameters<typeof isHeldBack>[1] {
    const { isForeign } = this.#options.origin;
    return { isExact: this.start === "exact", isForeign, isRepeating: this.#options.isRepeating };
  }

  #count(reading: Reading): void {
    this.events += 1;
    this.liveEvents += 1;
    if (this.#tally === undefined) return;
    reading.counter ??= this.#tally.events.of(reading.backend, "event");
    reading.counter.add(1);
  }

  /** Begins to count live events and live time at the same bookmark as client-go (watch.md §5.1). */
  #endInitialEvents(now: number): void {
    this.markerAt = now;
    this.liveEvents = 0;
  }

  #fate(event: WatchEvent, reading: Reading, isMerged: boolean): Fate {
    if (this.phase === "opaque" || this.phase === "ended") return "forward";
    if (event.version === "") return this.#lost(isMerged);
    return this.#options.origin.isForeign
      ? this.#unsure(event, reading, isMerged)
      : this.#ordered(event, reading, isMerged);
  }

  /**
   * Forwards all events, because the API's origin is unknown. Also tracks the events' versions, because a CRD may turn
   * out to define the API.
   */
  #unsure(event: WatchEvent, reading: Reading, isMerged: boolean): Fate {
    const { versionRegressions } = this;
    const fate = isMerged ? "broken" : this.#ordered(event, reading, false);
    const isInOrder = fate === "forward" && versionRegressions === this.versionRegressions;
    this.versionRegressions = versionRegressions;
    return isInOrder ? "forward" : this.#lost(isMerged);
  }

  #ordered(event: WatchEvent, reading: Reading, isMerged: boolean): Fate {
    if (this.phase !== "live" && !this.#goLive(event, reading)) return "forward";
    return event.type === "BOOKMARK"
      ? this.#bookmark(event, reading, isMerged)
      : this.#change(event, reading, isMerged);
  }

  /**
   * True if the initial events are over. An ADDED proves this only if it is newer than each initial event; any other
   * event always does (watch.md §3). If the client waits for the bookmark that ends the initial events, only that
   * bookmark counts, because live events may precede it.
   */
  #goLive(event: WatchEvent, reading: Reading): boolean {
    const isAwaited = this.#options.awaitsMarker === true && !event.endsInitialEvents;
    const isListed = event.type === "ADDED" && this.start === "state" && !reading.isAfterInitial(event);
    this.phase = isAwaited || isListed ? "listing" : "live";
    return this.phase === "live";
  }

  #lost(isMerged: boolean): Fate {
    // The event is not forwarded, because the other stream delivers it as well and the client would get it twice.
    if (isMerged) return "broken";
    this.#isLost = true;
    if (this.phase === "opening") this.phase = this.start === "state" ? "listing" : "live";
    return "forward";
  }

  #bookmark(event: WatchEvent, reading: Reading, isMerged: boolean): Fate {
    const { version } = event;
    // A bookmark older than the stream's last version would make the client resume from an old version (incident 001).
    const isBack = compareVersions(version, reading.bookmark) < 0;
    if (isBack || compareVersions(version, reading.mark.version) < 0) {
      this.versionRegressions += 1;
      return "drop";
    }
    const ahead = compareVersions(version, this.#cursor);
    if (ahead >= 0 && !reading.hasReached(this.#delivered)) return "broken";
    reading.bookmark = version;
    if (ahead < 0) return "drop";
    this.#cursor = version;
    this.#isComplete = true;
    return ahead === 0 && isMerged ? "drop" : "forward";
  }

  #change(event: WatchEvent, reading: Reading, isMerged: boolean): Fate {
    const { version } = event;
    const isBefore = reading.isBefore(version);
    if (isBefore && reading.isOurs) return "broken";
    if (isBefore || !reading.isInOrder(version)) return this.#regressed(isMerged);
    const ahead = compareVersions(version, this.#cursor);
    if (ahead > 0 && !reading.hasReached(this.#delivered)) return "broken";
    reading.mark = reading.mark.after(event);
    if (ahead > 0) return this.#advance(event, reading);
    return ahead < 0 ? "drop" : this.#same(event, reading);
  }

  #advance(event: WatchEvent, { mark }: Reading): Fate {
    this.#previous = this.#cursor;
    this.#cursor = event.version;
    this.#isComplete = false;
    // Stream and client have nearly always received one event of this version, so that they can share one mark.
    this.#delivered = mark.count === 1 ? mark : this.#delivered.after(event);
    return "forward";
  }

  /**
   * Decides what happens to an event that has the same version as the client's latest event. It is either a duplicate
   * or the next event of a batch.
   */
  #same(event: WatchEvent, { mark }: Reading): Fate {
    const delivered = this.#delivered;
    if (this.#isComplete) return "drop";
    if (mark.count <= delivered.count)
      return mark.count === delivered.count && !mark.equals(delivered) ? "broken" : "drop";
    this.#isRepeating = true;
    this.#delivered = delivered.after(event);
    return "forward";
  }

  /**
   * Handles an event that is older than its stream's previous event. After such an event was forwarded, the watch
   * cannot move.
   */
  #regressed(isMerged: boolean): Fate {
    if (isMerged) return "broken";
    this.versionRegressions += 1;
    this.#isLost = true;
    return "forward";
  }
}

/**
 * The latest delivered events, which all have the same version: nearly always a single event, but an etcd lease that
 * expires deletes up to a thousand objects at once (watch.md §5.3). All backends deliver such a batch in the same
 * order. So the number of its delivered events and a hash of their names identify a position in the batch.
 */
export class Mark {
  readonly version: string;
  readonly count: number;
  readonly hash: number;

  constructor(version: string, count: number, hash: number) {
    this.version = version;
    this.count = count;
    this.hash = hash;
  }

  /** Returns the mark after one more event has been delivered. Its version must not be older than `version`. */
  after({ version, type, key }: WatchEvent): Mark {
    const isNext = version === this.version;
    const hash = hashed(hashed(isNext ? this.hash : 0, type), key);
    return new Mark(version, isNext ? this.count + 1 : 1, hash);
  }

  equals(other: Mark): boolean {
    return this.version === other.version && this.count === other.count && this.hash === other.hash;
  }
}

/** The mark before any event was delivered. */
export const noMark = new Mark("", 0, 0);

/**
 * What one upstream stream of a watch has delivered. Every stream delivers all events after the version it was
 * requested from, in order. A watch can therefore continue with another stream, and the proxy can merge two streams
 * (watch.md §5.6).
 */
export class Reading {
  /** Version that the stream was requested from; "" if the request named none. */
  readonly from: string;
  /**
   * True if the proxy requested the stream (a resume or a hedge). An ERROR in such a stream does not answer the
   * client's own request.
   */
  readonly isOurs: boolean;
  readonly backend: string;
  /** The backend's counter of forwarded events; undefined until an event of this stream was forwarded. */
  counter: BackendCount | undefined;
  mark = noMark;
  /** Newest version of the stream's bookmarks, up to which all events have arrived; "": no bookmark yet. */
  bookmark = "";
  /** Number of whole events, bookmarks included. */
  events = 0;
  /**
   * Upper limit for the versions of the initial events: the version of a list (initial-events.ts). undefined: the list
   * was not requested; "": the list was requested, but has returned no version.
   */
  initialUpTo: string | undefined;

  constructor(from: string, isOurs: boolean, backend: string) {
    this.from = from;
    this.isOurs = isOurs;
    this.backend = backend;
  }

  /**
   * True if an event of this version is in order: not older than the stream's latest event, and newer than its latest
   * bookmark. Several events may share one version.
   */
  isInOrder(version: string): boolean {
    return compareVersions(version, this.mark.version) >= 0 && compareVersions(version, this.bookmark) > 0;
  }

  isAfterInitial({ version }: Pick<WatchEvent, "version">): boolean {
    const upTo = this.initialUpTo ?? "";
    return upTo !== "" && compareVersions(version, upTo) > 0;
  }

  /**
   * True if the event's version is not newer than the version that the stream was requested from. The backend has then
   * ignored the version in the query.
   */
  isBefore(version: string): boolean {
    return this.from !== "" && compareVersions(version, this.from) <= 0;
  }

  /**
   * True if the stream has delivered the events of `delivered`, or was requested from `delivered.version` or a newer
   * version.
   */
  hasReached(delivered: Mark): boolean {
    return this.mark.equals(delivered) || compareVersions(this.from, delivered.version) >= 0;
  }
}

/**
 * The hash is FNV-1a. A collision does little harm, because the hash only compares the order of one batch at two
 * backends.
 */
function hashed(seed: number, text: string): number {
  let hash = seed ^ 0x811c9dc5;
  for (let index = 0; index < text.length; index++)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash;
}
