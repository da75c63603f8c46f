/**
 * How far a watch has come, event by event: which go on to its client, and from which version it could go on elsewhere
 * (watch.md §4, whose table this is; two legs are merged by §5.6).
 *
 *     opening ──▶ listing ──▶ live          any ──▶ opaque: not understood
 *        └───────────────────▶              any ──▶ ended:  an ERROR went to the client
 */

import type { Origin } from "../../kube/api-origin.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import type { Start } from "../../kube/watch-request.ts";
import type { WatchEvent } from "../codec/event.ts";
import { Mark, type Reading } from "./stream-progress.ts";

export type Phase = "opening" | "listing" | "live" | "opaque" | "ended";

/** Of many watches together, kept as they go on: to add up 50,000 takes a loop turn too long. */
export type Tally = {
  events: number;
  violations: number;
  /** How many are in each phase. */
  readonly phases: Record<Phase, number>;
};

/**
 * What becomes of an event. `drop`: the client has it, or never asked for it. `hold`: the other leg has to show it first
 * (sentinel-buffer.ts). `refused`: an ERROR that answers our own
 * request, or one backend's 410 to the client's, when another may know better. `broken`: the leg is not what it was asked to be.
 */
export type Fate = "forward" | "drop" | "hold" | "refused" | "broken";

/** With the octets that left for their clients (exchange.ts). */
export type WatchTally = Tally & { bytes: number };

export type ProgressOptions = {
  readonly start: Start;
  /** Of an `exact` start. */
  readonly version: string;
  /** Does the client wait for the marker of a `state`? Then nobody else may go on before it, for nobody else sends it. */
  readonly awaitsMarker?: boolean;
  /** Do several events share one version (`events`, whose leases expire in batches)? */
  readonly isRepeating: boolean;
  /** Whose versions they are, as far as that is known by now. */
  readonly origin: Pick<Origin, "isForeign">;
  /** Were bookmarks asked for that the client did not want? It never sees them then. */
  readonly isInjected: boolean;
};

export class Progress {
  /** What it was asked for. Not kept as it came: of 50,000 watches each would keep an object of its own. */
  readonly start: Start;
  readonly #awaitsMarker: boolean;
  readonly #mayRepeat: boolean;
  readonly #origin: Pick<Origin, "isForeign">;
  readonly #isInjected: boolean;
  #phase: Phase = "opening";
  /** Where it is counted, from `countIn` to `countOut`. */
  #tally: Tally | undefined;
  /** All that matches up to here was delivered, but perhaps for events of this very version; "" when not known. */
  #cursor: string;
  /** The cursor before the version that is delivered now: surely complete. */
  #previous = "";
  /** Is nothing of the cursor's version still to come? */
  #isComplete: boolean;
  #isRepeating: boolean;
  /** An event without a version, or one out of order, went on: nobody knows any more where this watch stands. */
  #isLost = false;
  readonly #delivered = new Mark();
  /** Events that went to the client, since its request and since the end of its initial events; bookmarks count. */
  events = 0;
  liveEvents = 0;
  /** Events older than what the same leg had shown (incident 001). */
  #violations = 0;
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

  get violations(): number {
    return this.#violations;
  }

  set violations(count: number) {
    if (this.#tally !== undefined) this.#tally.violations += count - this.#violations;
    this.#violations = count;
  }

  /** From now on it is one of those that `tally` counts, with what it has had. */
  countIn(tally: Tally): void {
    this.#tally = tally;
    tally.phases[this.#phase] += 1;
    tally.events += this.events;
    tally.violations += this.#violations;
  }

  /** It is in no phase any more; its events stay counted. */
  countOut(): void {
    if (this.#tally !== undefined) this.#tally.phases[this.#phase] -= 1;
    this.#tally = undefined;
  }

  get cursor(): string {
    return this.#cursor;
  }

  /**
   * The version after which it may be asked for elsewhere, with nothing missing and nothing twice; undefined when it
   * cannot be. Where versions repeat, the open one is asked for again, and what was delivered of it is dropped.
   */
  get resumeVersion(): string | undefined {
    const isOrdered = this.phase === "live" || (this.phase === "opening" && this.start === "exact");
    if (!isOrdered || this.#isLost || this.#origin.isForeign) return undefined;
    const version = this.#isRepeating && !this.#isComplete ? this.#previous : this.#cursor;
    return version === "" ? undefined : version;
  }

  /** Are its bytes events, so that it may end between two of them? */
  get isReadable(): boolean {
    return this.phase !== "opaque";
  }

  /** The stream is not what it claimed to be. */
  lose(): void {
    if (this.phase !== "ended") this.phase = "opaque";
  }

  /** True if the client does not have this event of a leg yet. */
  isAhead({ version }: Pick<WatchEvent, "version">, { mark }: Reading): boolean {
    const ahead = compareVersions(version, this.#cursor);
    if (ahead !== 0) return ahead > 0;
    return !this.#isComplete && mark.version === version && mark.count >= this.#delivered.count;
  }

  /** True if a leg has shown all that was delivered: one that is beyond that and has not never will. */
  isShownBy(reading: Reading): boolean {
    return reading.hasReached(this.#delivered);
  }

  /** The next whole event of a leg. `isMerged`: does another leg deliver this watch, too? */
  take(event: WatchEvent, reading: Reading, isMerged: boolean, now: number): Fate {
    reading.events += 1;
    if (event.type === "ERROR") return this.#error(event, reading, isMerged);
    this.lastEventAt = now;
    if (event.type === "BOOKMARK") this.lastBookmarkAt = now;
    else this.lastChangeAt = now;
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

  /** One cache has forgotten it. Of `events` only etcd knows, and all backends ask that. */
  get #mayBeKnownElsewhere(): boolean {
    const isOfCaches = this.start === "exact" && !this.#origin.isForeign && !this.#mayRepeat;
    return this.phase === "opening" && isOfCaches;
  }

  #count(): void {
    this.events += 1;
    this.liveEvents += 1;
    if (this.#tally !== undefined) this.#tally.events += 1;
  }

  /** client-go starts its clock and its count anew behind the marker (watch.md §5.1). */
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
   * Of a server that may count in another way everything goes on as it came. Where this watch stands is kept all the same:
   * it may turn out to be a custom resource's.
   */
  #unsure(event: WatchEvent, reading: Reading, isMerged: boolean): Fate {
    const { violations } = this;
    const fate = isMerged ? "broken" : this.#ordered(event, reading, false);
    const isInOrder = fate === "forward" && violations === this.violations;
    this.violations = violations;
    return isInOrder ? "forward" : this.#lost(isMerged);
  }

  #ordered(event: WatchEvent, reading: Reading, isMerged: boolean): Fate {
    if (this.phase !== "live" && !this.#goLive(event)) return "forward";
    return event.type === "BOOKMARK"
      ? this.#bookmark(event, reading, isMerged)
      : this.#change(event, reading, isMerged);
  }

  /**
   * An initial ADDED never proves that the initial ones are over; everything else does (watch.md §3). But where a marker
   * is to come, live events may come before it: the cache shows what it had, and the marker is of the time of the request.
   */
  #goLive(event: WatchEvent): boolean {
    const isAwaited = this.#awaitsMarker && !event.endsInitialEvents;
    const isListed = event.type === "ADDED" && this.start === "state";
    this.phase = isAwaited || isListed ? "listing" : "live";
    return this.phase === "live";
  }

  #lost(isMerged: boolean): Fate {
    // The other leg will show the same event, and only one of the two may go on.
    if (isMerged) return "broken";
    this.#isLost = true;
    if (this.phase === "opening") this.phase = this.start === "state" ? "listing" : "live";
    return "forward";
  }

  #bookmark(event: WatchEvent, reading: Reading, isMerged: boolean): Fate {
    const { version } = event;
    // A bookmark that goes back would lead the client back: it is not needed by anyone (001).
    const isBack = compareVersions(version, reading.bookmark) < 0;
    if (isBack || compareVersions(version, reading.mark.version) < 0) {
      this.violations += 1;
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
    if (isBefore || !reading.isInOrder(version)) return this.#violated(isMerged);
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

  /** Another event of the version delivered last: the client has it, or it is the next of a batch. */
  #same(event: WatchEvent, { mark }: Reading): Fate {
    const delivered = this.#delivered;
    if (this.#isComplete) return "drop";
    if (mark.count <= delivered.count)
      return mark.count === delivered.count && !mark.equals(delivered) ? "broken" : "drop";
    this.#isRepeating = true;
    delivered.add(event);
    return "forward";
  }

  /** Never moves the cursor back; and nobody else could show this, so it goes on, and the watch stays where it is. */
  #violated(isMerged: boolean): Fate {
    if (isMerged) return "broken";
    this.violations += 1;
    this.#isLost = true;
    return "forward";
  }
}
