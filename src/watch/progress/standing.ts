/** How far one backend has come with one resource, as all its watches together show (watch.md §4). */

import { compareVersions, versionBefore } from "../../kube/resource-version.ts";
import type { WatchEvent } from "../codec/event.ts";

/** Found to stand still. Until `until` nobody is sent there; found again after that, it is for twice as long. */
export type Stall = {
  /** What others had shown and it had not. */
  readonly version: string;
  readonly since: number;
  readonly until: number;
  readonly spellMs: number;
};

/** How far one backend has come with one resource, as all its watches together show. Times are clock readings. */
export class Standing {
  readonly backend: string;
  readonly resource: string;
  /** The newest version that it has shown, and the newest of an event. */
  version = "";
  event = "";
  /** Its open watches; and those of them that see all of the resource. */
  watches = 0;
  wholeWatches = 0;
  /** When a bookmark came last; -1 before the first. */
  bookmarkAt = -1;
  /** Since when it has shown nothing new, although it has a watch. */
  stillSince = 0;
  stall: Stall | undefined;
  /** The newest version from which it would not go on: what came next is not in its cache, and never will be again. */
  refused = "";
  /** Has it refused a newer one than before? Until somebody asks. */
  #hasForgotten = false;

  constructor(backend: string, resource: string) {
    this.backend = backend;
    this.resource = resource;
  }

  join(isWhole: boolean, now: number): void {
    if (this.watches === 0) this.stillSince = now;
    this.watches += 1;
    if (isWhole) this.wholeWatches += 1;
  }

  leave(isWhole: boolean): void {
    this.watches -= 1;
    if (isWhole) this.wholeWatches -= 1;
  }

  /** One of its watches shows an event of this version: told of every one, and nearly always of the newest. */
  show(version: string, now: number): void {
    const ahead = compareVersions(version, this.version);
    // No event is newer than what it has shown at all.
    if (ahead === 0) this.event = this.version;
    else if (ahead < 0) this.event = compareVersions(version, this.event) > 0 ? version : this.event;
    else {
      this.event = version;
      this.#reach(version, now);
    }
  }

  /** A bookmark says that its cache is so far. The marker says where a list ended; only the others come every minute. */
  tell({ version, endsInitialEvents }: WatchEvent, now: number): void {
    if (!endsInitialEvents) this.bookmarkAt = now;
    if (compareVersions(version, this.version) > 0) this.#reach(version, now);
  }

  /** It answered a watch from this version with 410. `oldest`: the first that it takes, "" when it did not say. */
  refuse(version: string, oldest: string): void {
    // One that names a version which it has just refused contradicts itself.
    const isSaid = compareVersions(oldest, version) > 0;
    const newest = isSaid ? versionBefore(oldest) : version;
    if (compareVersions(newest, this.refused) <= 0) return;
    this.refused = newest;
    this.#hasForgotten = true;
  }

  /** Told once. */
  get hasForgotten(): boolean {
    const hasForgotten = this.#hasForgotten;
    this.#hasForgotten = false;
    return hasForgotten;
  }

  #reach(version: string, now: number): void {
    this.version = version;
    this.stillSince = now;
  }
}

/** The newest event that any of them has shown; "" when none has. */
export function latestEventOf(standings: Iterable<Standing>): string {
  let latest = "";
  for (const { event } of standings) if (compareVersions(event, latest) > 0) latest = event;
  return latest;
}

export function isStalled({ stall }: Standing, now: number): boolean {
  return stall !== undefined && now < stall.until;
}
