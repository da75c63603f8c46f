/**
 * Makes watch caches follow etcd. If a resource does not change, its cache learns etcd's version only when etcd
 * notifies it: every 10 minutes by default, every 5 s with kubeadm's settings. Until then, the cache's bookmarks have
 * old versions, and a watch could not continue from them on a backend whose cache began later. A consistent list makes
 * the apiserver request the current version from etcd for that cache (list-request.ts, docs/watch.md §6.6). Before the
 * watches of a resource on a backend get new bookmarks, the proxy sends one such list. A cache that still does not
 * advance is journaled.
 */

import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { inSlices } from "../../base/slices.ts";
import type { Journal } from "../../events/journal.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import type { Client } from "../../upstream/context/client.ts";
import type { PoolSet } from "../../upstream/pool/pool-set.ts";
import { watchLimits } from "../limits.ts";
import type { WatchSession } from "../session/watch-session.ts";
import { type ListAnswer, listAs } from "./list-request.ts";

type ProgressRequestsParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly pools: PoolSet;
};

/** A watch that needs a bookmark. The bookmark must cover all events up to the clock reading `since`. */
export type BookmarkRefresh = { readonly watch: WatchSession; readonly since: number };

type CacheRecord = {
  readonly backend: string;
  readonly resource: string;
  /** Clock reading at which the last list was sent; -Infinity: none yet. */
  askedAt: number;
  isAsked: boolean;
  /** etcd's version at `askedAt`; "" if the list did not return it. */
  version: string;
  /**
   * Number of lists in a row that have failed. The count starts from 0 again when a refresh needs a newer version from
   * etcd.
   */
  tries: number;
  /** The client with whose identity the latest list was sent. */
  client: Client | undefined;
  /** Refreshes that wait for the list's response, or until another list may be sent. */
  waiting: BookmarkRefresh[];
  /**
   * Watches that have opened a stream for a bookmark since `version` was received. Each watch should have reached
   * `version` by the next check.
   */
  refreshed: WatchSession[];
  isChecked: boolean;
  /** True if the cache's latest journal entry states that etcd does not notify the cache. */
  isMissing: boolean;
};

export type ProgressCounts = {
  readonly answered: number;
  readonly refused: number;
  readonly unanswered: number;
};

export class ProgressRequests {
  readonly #parts: ProgressRequestsParts;
  readonly #again: (refreshes: readonly BookmarkRefresh[]) => void;
  readonly #records = new Map<string, CacheRecord>();
  readonly #counts = { answered: 0, refused: 0, unanswered: 0 };

  /** `again` is called with refreshes that had to wait and can be tried again. */
  constructor(parts: ProgressRequestsParts, again: (refreshes: readonly BookmarkRefresh[]) => void) {
    this.#parts = parts;
    this.#again = again;
  }

  get counts(): ProgressCounts {
    return this.#counts;
  }

  get size(): number {
    return this.#records.size;
  }

  /**
   * Returns a version that etcd had after `refresh.since`. The backend's cache must reach this version. Returns "" if
   * no such version can be found. Returns undefined while the list that shows the version is pending; `refresh` then
   * waits for the list.
   */
  versionFor(refresh: BookmarkRefresh, backend: string): string | undefined {
    const { watch, since } = refresh;
    const record = this.#recordOf(backend, watch.resource);
    const isNew = !record.isAsked && record.askedAt >= since;
    if (isNew && !this.#mayTry(record, watch)) return record.version;
    record.waiting.push(refresh);
    if (record.isAsked || record.waiting.length > 1) return undefined;
    const pauseMs = isNew ? 0 : record.askedAt + watchLimits.progressRequestMs - this.#parts.clock.now();
    if (!isNew) record.tries = 0;
    if (pauseMs <= 0) this.#ask(record, watch);
    else this.#parts.clock.after(pauseMs, () => this.#release(record));
    return undefined;
  }

  /**
   * Called when the watch has opened a stream for a bookmark. A later check shows whether the watch has reached etcd's
   * version.
   */
  refreshed(watch: WatchSession, backend: string): void {
    const record = this.#recordOf(backend, watch.resource);
    if (record.version === "") return;
    record.refreshed.push(watch);
    this.#checkIn(record, limits.progressCheckMs);
  }

  #recordOf(backend: string, resource: string): CacheRecord {
    const key = `${backend} ${resource}`;
    const known = this.#records.get(key);
    if (known !== undefined) return known;
    const record: CacheRecord = {
      backend,
      resource,
      askedAt: Number.NEGATIVE_INFINITY,
      isAsked: false,
      version: "",
      tries: 0,
      client: undefined,
      waiting: [],
      refreshed: [],
      isChecked: false,
      isMissing: false,
    };
    this.#makeRoom();
    this.#records.set(key, record);
    return record;
  }

  #makeRoom(): void {
    if (this.#records.size < watchLimits.progressRecords) return;
    for (const [key, { isAsked, isChecked, waiting }] of this.#records)
      if (!isAsked && !isChecked && waiting.length === 0) return void this.#records.delete(key);
  }

  /** True if the list was refused for another client, and this watch's client may have the permission. */
  #mayTry({ version, tries, client }: CacheRecord, watch: WatchSession): boolean {
    return (
      version === "" &&
      tries > 0 &&
      tries < watchLimits.progressTries &&
      watch.clientRequest.client !== client
    );
  }

  #ask(record: CacheRecord, watch: WatchSession): void {
    record.isAsked = true;
    record.askedAt = this.#parts.clock.now();
    record.client = watch.clientRequest.client;
    this.#list(record, watch, undefined, (answer) => this.#answered(record, answer));
  }

  #list(
    record: CacheRecord,
    watch: WatchSession,
    least: string | undefined,
    onAnswer: (answer: ListAnswer) => void,
  ): void {
    const { backend } = record;
    const context = watch.listed(least);
    if (context === undefined) onAnswer({ status: 0, version: "", ms: 0 });
    else listAs(watch, { backend, context, onAnswer }, this.#parts);
  }

  #answered(record: CacheRecord, { status, version, ms }: ListAnswer): void {
    record.isAsked = false;
    record.version = version;
    // Status 0: the backend has not answered. It would not answer another client either, so no other client is tried.
    if (version !== "") record.tries = 0;
    else record.tries = status === 0 ? watchLimits.progressTries : record.tries + 1;
    if (version !== "") this.#counts.answered += 1;
    else if (status === 0) this.#counts.unanswered += 1;
    else this.#counts.refused += 1;
    // The response came so late that the cache must be stalled (stalled-cache.ts). The cache will not reach `version`
    // soon.
    if (ms > watchLimits.progressWaitMs) record.version = "";
    this.#release(record);
  }

  #release(record: CacheRecord): void {
    const { waiting } = record;
    record.waiting = [];
    this.#again(waiting);
  }

  #checkIn(record: CacheRecord, ms: number): void {
    if (record.isChecked) return;
    record.isChecked = true;
    this.#parts.clock.after(ms, () => this.#check(record));
  }

  #check(record: CacheRecord): void {
    record.isChecked = false;
    const { backend, version, askedAt } = record;
    // If a later list has returned a newer version, etcd has `progressCheckMs` from that list to notify the cache.
    const leftMs = askedAt + limits.progressCheckMs - this.#parts.clock.now();
    if (leftMs > 0) return this.#checkIn(record, leftMs);
    const { refreshed } = record;
    const left: WatchSession[] = [];
    record.refreshed = [];
    record.isChecked = true;
    inSlices(
      this.#parts.clock,
      refreshed,
      (watch) => {
        const { attempt, mayHedge } = watch;
        if (attempt?.backend === backend && mayHedge && isBehind(watch, version)) left.push(watch);
      },
      () => this.#askFor(record, left, version),
    );
  }

  /** Requests the version that the cache has reached. `left`: refreshed watches that have not reached `version`. */
  #askFor(record: CacheRecord, left: readonly WatchSession[], version: string): void {
    record.isChecked = false;
    const [watch] = left;
    if (watch === undefined && record.refreshed.length > 0)
      return this.#checkIn(record, limits.progressCheckMs);
    if (watch === undefined) return this.#found(record, version);
    record.refreshed = [...left, ...record.refreshed];
    // An apiserver answers a list with resourceVersion=1 from its cache. So the list has the cache's version.
    record.isChecked = true;
    this.#list(record, watch, "1", ({ version: cached }) => this.#checked(record, cached));
  }

  #checked(record: CacheRecord, cached: string): void {
    record.isChecked = false;
    if (cached === "" && !record.isMissing) record.refreshed = [];
    else if (compareVersions(cached, record.version) >= 0) this.#found(record, cached);
    else {
      if (!record.isMissing) this.#reportDelay(record, cached);
      this.#checkIn(record, watchLimits.progressAgainMs);
    }
  }

  #reportDelay(record: CacheRecord, version: string): void {
    record.isMissing = true;
    const { clock, journal } = this.#parts;
    const { backend, resource, version: etcdVersion, askedAt } = record;
    const lateMs = clock.now() - askedAt;
    journal.write({ kind: "cache.progress_delayed", backend, resource, version, etcdVersion, lateMs });
  }

  /**
   * Called if the cache has reached etcd's version, or if every refreshed watch has reached it. Refreshes the remaining
   * `record.refreshed` again.
   */
  #found(record: CacheRecord, version: string): void {
    const { clock, journal } = this.#parts;
    const { backend, resource, refreshed, askedAt } = record;
    record.refreshed = [];
    const now = clock.now();
    if (record.isMissing)
      journal.write({ kind: "cache.progress_restored", backend, resource, version, lateMs: now - askedAt });
    record.isMissing = false;
    this.#again(refreshed.map((watch) => ({ watch, since: askedAt })));
  }
}

export function isBehind({ progress }: WatchSession, version: string): boolean {
  return compareVersions(progress.resumeVersion ?? "", version) < 0;
}
