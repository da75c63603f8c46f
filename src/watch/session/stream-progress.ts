/**
 * What one upstream stream of a watch has delivered. Every stream is complete and in order by itself, from the version
 * that it was requested from. That makes it possible to continue with another one, or to merge two (watch.md §5.6).
 */

import { compareVersions } from "../../kube/resource-version.ts";
import type { WatchEvent } from "../codec/event.ts";

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
