/**
 * What one leg of a watch has shown. Every leg is complete and in order by itself, from the version that it was asked
 * from: that is what makes it possible to go on with another one, or to merge two (watch.md §5.6).
 */

import { compareVersions } from "../../kube/resource-version.ts";
import type { WatchEvent } from "../codec/event.ts";

/**
 * The events shown last, all of one version: nearly always one, but an expired lease deletes up to a thousand at once
 * (watch.md §5.3). Backends show those in one order, so their number and the hash of their names tell which they were.
 */
export class Mark {
  version = "";
  count = 0;
  hash = 0;

  /** One more event, of this version or a newer one. */
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
  /** The version that it was asked from; "" when the request named none. */
  readonly from: string;
  /** Is the request ours (a resume, a hedge), and no answer to it was promised to the client? */
  readonly isOurs: boolean;
  readonly mark = new Mark();
  /** The newest version that it proved complete with a bookmark. */
  bookmark = "";
  /** Whole events, bookmarks too. */
  events = 0;

  constructor(from: string, isOurs: boolean) {
    this.from = from;
    this.isOurs = isOurs;
  }

  /** May an event of this version come now, after what this leg has shown? Of one version there may be several. */
  isInOrder(version: string): boolean {
    return compareVersions(version, this.mark.version) >= 0 && compareVersions(version, this.bookmark) > 0;
  }

  /** Would it have to be asked from an older version, to show this? Then the backend has not read the query. */
  isBefore(version: string): boolean {
    return this.from !== "" && compareVersions(version, this.from) <= 0;
  }

  /** Has it shown all that ends with `delivered`, or was it asked from behind that? */
  hasReached(delivered: Mark): boolean {
    return this.mark.equals(delivered) || compareVersions(this.from, delivered.version) >= 0;
  }
}

/** FNV-1a over UTF-16 units. Nobody gains from a collision: it only compares two backends' order of one batch. */
function hashed(seed: number, text: string): number {
  let hash = seed ^ 0x811c9dc5;
  for (let index = 0; index < text.length; index++)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash;
}
