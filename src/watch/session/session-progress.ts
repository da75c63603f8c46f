/**
 * How far a watch has come, event by event: which events are forwarded to its client, and from which version it can
 * continue on another backend (the table of watch.md §4; two streams are merged by §5.6).
 *
 *     opening ──▶ listing ──▶ live          any ──▶ opaque: not understood
 *        └───────────────────▶              any ──▶ ended:  an ERROR went to the client
 */

import type { Origin } from "../../kube/api-origin.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import type { Start } from "../../kube/watch-request.ts";
import type { EventType, WatchEvent } from "../codec/event.ts";

export type Phase = "opening" | "listing" | "live" | "opaque" | "ended";

/** Sums over many watches, updated with each event: adding up 50,000 watches takes longer than a loop turn may. */
export type Tally = {
  events: number;
  versionRegressions: number;
  /** The number of watches in each phase. */
  readonly phases: Record<Phase, number>;
};

/**
 * What becomes of an event. `drop`: the client has it, or never requested it. `hold`: the first stream has to deliver it
 * first (`Ahead`). `refused`: an ERROR that answers the proxy's own request, or one backend's 410 to the client's
 * request while another backend may know the version. `broken`: the stream is not what was requested.
 */
export type Fate = "forward" | "drop" | "hold" | "refused" | "broken";

/** With the bytes that have left for clients (exchange.ts). */
export type WatchTally = Tally & { bytes: number };

export type ProgressOptions = {
  readonly start: Start;
  /** Of an `exact` start. */
  readonly version: string;
  /**
   * True if the client waits for the marker of a `state`. Then no other stream may continue before it, since no other
   * sends it.
   */
  readonly awaitsMarker?: boolean;
  /** True if several events share one version (`events`, whose leases expire in batches). */
  readonly isRepeating: boolean;
  /** Whose versions they are, as far as known. */
  readonly origin: Pick<Origin, "isForeign">;
  /** True if the proxy requested bookmarks that the client did not want. They are never forwarded. */
  readonly isInjected: boolean;
};

export class Progress {
  /** What the client requested. Copied into fields, because 50,000 watches would each keep an object of their own. */
  readonly start: Start;
  readonly #awaitsMarker: boolean;
  readonly #mayRepeat: boolean;
  readonly #origin: Pick<Origin, "isForeign">;
  readonly #isInjected: boolean;
  #phase: Phase = "opening";
  /** The sums that include this watch, from `countIn` to `countOut`. */
  #tally: Tally | undefined;
  /** All events up to this version were delivered, except perhaps further events of this very version; "" if not known. */
  #cursor: string;
  /** The cursor before the version that is being delivered: certainly complete. */
  #previous = "";
  /** True if no event of the cursor's version can follow. */
  #isComplete: boolean;
  #isRepeating: boolean;
  /** True after an event without a version, or out of order, was forwarded: the position of this watch is unknown. */
  #isLost = false;
  readonly #delivered = new Mark();
  /** Events forwarded to the client, since its request and since the end of its initial events; bookmarks count. */
  events = 0;
  liveEvents = 0;
  /** Events older than what the same stream had delivered (incident 001). */
  #versionRegressions = 0;
  /** Clock readings; -1 before the first. */
  lastEventAt = -1;
  lastBookmarkAt = -1;
  /** Of the last event that was no bookmark. */
  lastChangeAt = -1;
  /** When the initial events ended. */
  markerAt = -1;

  constructor(options: ProgressOptions) {
    this.start = options.start;
    this.#awaitsMarker = options.awaitsMarker === true;
    this.#mayRepeat = options.isRepeating;
    this.#origin = options.origin;
    this.#isInjected = options.isInjected;
    this.#cursor = options.start === "exact" ? options.version : "";
    this.#isComplete = options.start === "exact";
    this.#isRepeating = options.isRepeating;
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

  /** Adds this watch, with its counts so far, to `tally`. */
  countIn(tally: Tally): void {
    this.#tally = tally;
    tally.phases[this.#phase] += 1;
    tally.events += this.events;
    tally.versionRegressions += this.#versionRegressions;
  }

  /** Takes it out of its phase's count; its events stay counted. */
  countOut(): void {
    if (this.#tally !== undefined) this.#tally.phases[this.#phase] -= 1;
    this.#tally = undefined;
  }

  get cursor(): string {
    return this.#cursor;
  }

  /**
   * The version from which another backend can continue with nothing missing and nothing twice; undefined if there is
   * none. Where versions repeat, the open version is requested again, and the events of it that were delivered are
   * dropped.
   */
  get resumeVersion(): string | undefined {
    const isOrdered = this.phase === "live" || (this.phase === "opening" && this.start === "exact");
    if (!isOrdered || this.#isLost || this.#origin.isForeign) return undefined;
    const version = this.#isRepeating && !this.#isComplete ? this.#previous : this.#cursor;
    return version === "" ? undefined : version;
  }

  /** True if its bytes are events, so that it may end between two of them. */
  get isReadable(): boolean {
    return this.phase !== "opaque";
  }

  /** The stream is not in the announced format. */
  lose(): void {
    if (this.phase !== "ended") this.phase = "opaque";
  }

  /** True if the client does not have this event of a stream yet. */
  isAhead({ version }: Pick<WatchEvent, "version">, { mark }: Reading): boolean {
    const ahead = compareVersions(version, this.#cursor);
    if (ahead !== 0) return ahead > 0;
    return !this.#isComplete && mark.version === version && mark.count >= this.#delivered.count;
  }

  /** True if a stream has delivered everything that the client got. A stream past that point that has not never will. */
  isShownBy(reading: Reading): boolean {
    return reading.hasReached(this.#delivered);
  }

  /** An event came that ends the silence of the first stream. `isExpected`: true if that stream delivers such bookmarks. */
  arrived(type: EventType, now: number, isExpected: boolean): void {
    if (type === "ERROR") return;
    this.lastEventAt = now;
    if (type !== "BOOKMARK") this.lastChangeAt = now;
    else if (isExpected) this.lastBookmarkAt = now;
  }

  /** Another stream is the first from now on: it has had no bookmark yet, and may have none for long. */
  promoted(): void {
    this.lastBookmarkAt = -1;
  }

  /** Takes the next whole event of a stream. `isMerged`: true if another stream delivers this watch, too. */
  take(event: WatchEvent, reading: Reading, isMerged: boolean, now: number): Fate {
    reading.events += 1;
    if (event.type === "ERROR") return this.#error(event, reading, isMerged);
    const fate = this.#fate(event, reading, isMerged);
    if (fate === "forward") this.#count();
    if (event.endsInitialEvents) this.#endInitialEvents(now);
    return fate;
  }

  #error(event: WatchEvent, reading: Reading, isMerged: boolean): Fate {
    const isFirst = reading.events === 1;
    if (isMerged || (isFirst && reading.isOurs)) return "refused";
    if (isFirst && event.code === 410 && this.#mayBeKnownElsewhere) return "refused";
    this.phase = "ended";
    this.#count();
    return "forward";
  }

  /**
   * One cache has forgotten the version and another may have it. Versions of `events` only etcd knows, and all backends
   * ask that.
   */
  get #mayBeKnownElsewhere(): boolean {
    const isOfCaches = this.start === "exact" && !this.#origin.isForeign && !this.#mayRepeat;
    return this.phase === "opening" && isOfCaches;
  }

  #count(): void {
    this.events += 1;
    this.liveEvents += 1;
    if (this.#tally !== undefined) this.#tally.events += 1;
  }

  /** client-go restarts its clock and its count behind the marker (watch.md §5.1). */
  #endInitialEvents(now: number): void {
    this.markerAt = now;
    this.liveEvents = 0;
  }

  #fate(event: WatchEvent, reading: Reading, isMerged: boolean): Fate {
    if (this.phase === "opaque" || this.phase === "ended") return "forward";
    if (event.version === "") return this.#lost(isMerged);
    return this.#origin.isForeign
      ? this.#unsure(event, reading, isMerged)
      : this.#ordered(event, reading, isMerged);
  }

  /**
   * Events of a server whose versions may not be comparable are all forwarded as they came. The position is tracked all
   * the same, since the resource may turn out to be a custom resource.
   */
  #unsure(event: WatchEvent, reading: Reading, isMerged: boolean): Fate {
    const { versionRegressions } = this;
    const fate = isMerged ? "broken" : this.#ordered(event, reading, false);
    const isInOrder = fate === "forward" && versionRegressions === this.versionRegressions;
    this.versionRegressions = versionRegressions;
    return isInOrder ? "forward" : this.#lost(isMerged);
  }

  #ordered(event: WatchEvent, reading: Reading, isMerged: boolean): Fate {
    if (this.phase !== "live" && !this.#goLive(event)) return "forward";
    return event.type === "BOOKMARK"
      ? this.#bookmark(event, reading, isMerged)
      : this.#change(event, reading, isMerged);
  }

  /**
   * An initial ADDED never proves that the initial events are over; any other event does (watch.md §3). If a marker is to
   * come, live events may come before it: the cache sends what it had, and the marker is of the time of the request.
   */
  #goLive(event: WatchEvent): boolean {
    const isAwaited = this.#awaitsMarker && !event.endsInitialEvents;
    const isListed = event.type === "ADDED" && this.start === "state";
    this.phase = isAwaited || isListed ? "listing" : "live";
    return this.phase === "live";
  }

  #lost(isMerged: boolean): Fate {
    // The other stream will deliver the same event, and only one of the two may be forwarded.
    if (isMerged) return "broken";
    this.#isLost = true;
    if (this.phase === "opening") this.phase = this.start === "state" ? "listing" : "live";
    return "forward";
  }

  #bookmark(event: WatchEvent, reading: Reading, isMerged: boolean): Fate {
    const { version } = event;
    // A bookmark that goes back would make the client resume too early, so it is dropped (incident 001).
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
    if (this.#isInjected) return "drop";
    return ahead === 0 && isMerged ? "drop" : "forward";
  }

  #change(event: WatchEvent, reading: Reading, isMerged: boolean): Fate {
    const { version } = event;
    const isBefore = reading.isBefore(version);
    if (isBefore && reading.isOurs) return "broken";
    if (isBefore || !reading.isInOrder(version)) return this.#regressed(isMerged);
    const ahead = compareVersions(version, this.#cursor);
    if (ahead > 0 && !reading.hasReached(this.#delivered)) return "broken";
    reading.mark.add(event);
    if (ahead > 0) return this.#advance(event);
    return ahead < 0 ? "drop" : this.#same(event, reading);
  }

  #advance(event: WatchEvent): Fate {
    this.#previous = this.#cursor;
    this.#cursor = event.version;
    this.#isComplete = false;
    this.#delivered.add(event);
    return "forward";
  }

  /** Another event of the version delivered last: either the client has it, or it is the next of a batch. */
  #same(event: WatchEvent, { mark }: Reading): Fate {
    const delivered = this.#delivered;
    if (this.#isComplete) return "drop";
    if (mark.count <= delivered.count)
      return mark.count === delivered.count && !mark.equals(delivered) ? "broken" : "drop";
    this.#isRepeating = true;
    delivered.add(event);
    return "forward";
  }

  /** Never moves the cursor back. Without a second stream the event is forwarded, and the watch can no longer move. */
  #regressed(isMerged: boolean): Fate {
    if (isMerged) return "broken";
    this.versionRegressions += 1;
    this.#isLost = true;
    return "forward";
  }
}

// --- one upstream stream ---

/**
 * The events delivered last, all of one version: nearly always one, but an expired lease deletes up to a thousand at once
 * (watch.md §5.3). Backends deliver those in the same order, so their number and the hash of their names identify them.
 */
export class Mark {
  version = "";
  count = 0;
  hash = 0;

  /** Adds one more event, of this version or a newer one. */
  add(event: WatchEvent): void {
    if (event.version !== this.version) {
      this.version = event.version;
      this.count = 0;
      this.hash = 0;
    }
    this.count += 1;
    this.hash = hashed(hashed(this.hash, event.type), event.key);
  }

  equals(other: Mark): boolean {
    return this.version === other.version && this.count === other.count && this.hash === other.hash;
  }
}

/**
 * What one upstream stream of a watch has delivered. Every stream is complete and in order by itself, from the version
 * that it was requested from. That makes it possible to continue with another one, or to merge two (watch.md §5.6).
 */
export class Reading {
  /** The version that it was requested from; "" if the request named none. */
  readonly from: string;
  /** True if the request is the proxy's own (a resume, a hedge), so that no answer to it was promised to the client. */
  readonly isOurs: boolean;
  readonly mark = new Mark();
  /** The newest version that a bookmark proved complete. */
  bookmark = "";
  /** Whole events, bookmarks included. */
  events = 0;

  constructor(from: string, isOurs: boolean) {
    this.from = from;
    this.isOurs = isOurs;
  }

  /** True if an event of this version may follow what this stream has delivered. Several events may share one version. */
  isInOrder(version: string): boolean {
    return compareVersions(version, this.mark.version) >= 0 && compareVersions(version, this.bookmark) > 0;
  }

  /** True if the event is not newer than the version that the request named: then the backend has ignored the query. */
  isBefore(version: string): boolean {
    return this.from !== "" && compareVersions(version, this.from) <= 0;
  }

  /** True if it has delivered everything up to `delivered`, or was requested from a version behind that. */
  hasReached(delivered: Mark): boolean {
    return this.mark.equals(delivered) || compareVersions(this.from, delivered.version) >= 0;
  }
}

/**
 * FNV-1a over UTF-16 units. A collision gives an attacker nothing: the hash only compares two backends' order of one
 * batch.
 */
function hashed(seed: number, text: string): number {
  let hash = seed ^ 0x811c9dc5;
  for (let index = 0; index < text.length; index++)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash;
}
