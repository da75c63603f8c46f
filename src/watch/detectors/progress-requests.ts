/**
 * Makes caches follow etcd. The cache of a resource that does not change learns etcd's version only when etcd notifies
 * it: every 10 minutes by default, every 5 s with kubeadm's settings. Until then its bookmarks are old, and no watch of
 * that resource could continue on a backend whose cache began later. A consistent list makes the apiserver request the
 * current version from etcd for that cache (list-request.ts, docs/watch.md §6.6): one list for each backend and resource,
 * before its watches are refreshed. A cache that lists do not advance is found and journaled.
 */

import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { inSlices } from "../../base/slices.ts";
import type { Journal } from "../../events/journal.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import type { Client } from "../../proxy/context/client.ts";
import type { PoolSet } from "../../proxy/upstream/pool-set.ts";
import { watchLimits } from "../cache/limits.ts";
import type { WatchSession } from "../session/watch-session.ts";
import { type ListAnswer, listAs } from "./list-request.ts";

export type ProgressRequestsParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly pools: PoolSet;
};

/** A watch, and the clock reading up to which it must be proven complete. */
export type BookmarkRefresh = { readonly watch: WatchSession; readonly since: number };

/** One backend's cache of one resource. */
type Fact = {
  readonly backend: string;
  readonly resource: string;
  /** When the last list was sent, a clock reading; -Infinity before. */
  askedAt: number;
  isAsked: boolean;
  /** Etcd's version at that time; "" if no list returned it. */
  version: string;
  /** Failed lists since the last one that was answered, and the client of the last of them. */
  tries: number;
  client: Client | undefined;
  /** Refreshes that wait for the response, or until the next list may be sent. */
  waiting: BookmarkRefresh[];
  /** Watches refreshed since `version` was learnt, until their cache is checked. */
  refreshed: WatchSession[];
  isChecked: boolean;
  /** True after the journal entry that etcd does not notify this cache. */
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
  readonly #facts = new Map<string, Fact>();
  readonly #counts = { answered: 0, refused: 0, unanswered: 0 };

  /** `again` gets the refreshes that waited. */
  constructor(parts: ProgressRequestsParts, again: (refreshes: readonly BookmarkRefresh[]) => void) {
    this.#parts = parts;
    this.#again = again;
  }

  get counts(): ProgressCounts {
    return this.#counts;
  }

  /** The number of backend and resource pairs with a record. */
  get size(): number {
    return this.#facts.size;
  }

  /**
   * Returns the version that the backend's cache of the resource has reached since `since`; "" if that cannot be known.
   * Returns undefined while the list that will return it is pending: the refresh waits here.
   */
  versionFor(refresh: BookmarkRefresh, backend: string): string | undefined {
    const { watch, since } = refresh;
    const fact = this.#factOf(backend, watch.resource);
    const isNew = !fact.isAsked && fact.askedAt >= since;
    if (isNew && !this.#mayTry(fact, watch)) return fact.version;
    fact.waiting.push(refresh);
    if (fact.isAsked || fact.waiting.length > 1) return undefined;
    const pauseMs = isNew ? 0 : fact.askedAt + watchLimits.progressRequestMs - this.#parts.clock.now();
    if (!isNew) fact.tries = 0;
    if (pauseMs <= 0) this.#ask(fact, watch);
    else this.#parts.clock.after(pauseMs, () => this.#release(fact));
    return undefined;
  }

  /** The watch got a second stream that should deliver `version` or later; whether it did is checked later. */
  refreshed(watch: WatchSession, backend: string): void {
    const fact = this.#factOf(backend, watch.resource);
    if (fact.version === "") return;
    fact.refreshed.push(watch);
    this.#checkIn(fact, limits.progressCheckMs);
  }

  #factOf(backend: string, resource: string): Fact {
    const key = `${backend} ${resource}`;
    const known = this.#facts.get(key);
    if (known !== undefined) return known;
    const fact: Fact = {
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
    this.#facts.set(key, fact);
    return fact;
  }

  #makeRoom(): void {
    if (this.#facts.size < watchLimits.progressFacts) return;
    for (const [key, { isAsked, isChecked, waiting }] of this.#facts)
      if (!isAsked && !isChecked && waiting.length === 0) return void this.#facts.delete(key);
  }

  /**
   * True if the list was refused and this watch's client is another than the last, so that it may have the permission.
   */
  #mayTry({ version, tries, client }: Fact, watch: WatchSession): boolean {
    return version === "" && tries > 0 && tries < watchLimits.progressTries && watch.client !== client;
  }

  #ask(fact: Fact, watch: WatchSession): void {
    fact.isAsked = true;
    fact.askedAt = this.#parts.clock.now();
    fact.client = watch.client;
    this.#list(fact, watch, undefined, (answer) => this.#answered(fact, answer));
  }

  #list(
    fact: Fact,
    watch: WatchSession,
    least: string | undefined,
    onAnswer: (answer: ListAnswer) => void,
  ): void {
    const { backend } = fact;
    const context = watch.listed(least);
    if (context === undefined) onAnswer({ status: 0, version: "", ms: 0 });
    else listAs(watch, { backend, context, onAnswer }, this.#parts);
  }

  #answered(fact: Fact, { status, version, ms }: ListAnswer): void {
    fact.isAsked = false;
    fact.version = version;
    // A backend that does not answer one client does not answer any.
    if (version !== "") fact.tries = 0;
    else fact.tries = status === 0 ? watchLimits.progressTries : fact.tries + 1;
    if (version !== "") this.#counts.answered += 1;
    else if (status === 0) this.#counts.unanswered += 1;
    else this.#counts.refused += 1;
    // Waiting for a stalled cache is useless; stalled-cache.ts finds it.
    if (ms > watchLimits.progressWaitMs) fact.version = "";
    this.#release(fact);
  }

  #release(fact: Fact): void {
    const { waiting } = fact;
    fact.waiting = [];
    this.#again(waiting);
  }

  // --- whether it helps ---

  #checkIn(fact: Fact, ms: number): void {
    if (fact.isChecked) return;
    fact.isChecked = true;
    this.#parts.clock.after(ms, () => this.#check(fact));
  }

  #check(fact: Fact): void {
    fact.isChecked = false;
    const { backend, version, askedAt } = fact;
    // A later list returned a newer version: etcd has the same time to notify that one.
    const leftMs = askedAt + limits.progressCheckMs - this.#parts.clock.now();
    if (leftMs > 0) return this.#checkIn(fact, leftMs);
    const { refreshed } = fact;
    const left: WatchSession[] = [];
    fact.refreshed = [];
    fact.isChecked = true;
    inSlices(
      this.#parts.clock,
      refreshed,
      (watch) => {
        const { attempt, mayHedge } = watch;
        if (attempt?.backend === backend && mayHedge && isBehind(watch, version)) left.push(watch);
      },
      () => this.#askFor(fact, left, version),
    );
  }

  /** `left`: the refreshed watches that have not reached `version`. Others may have been refreshed since. */
  #askFor(fact: Fact, left: readonly WatchSession[], version: string): void {
    fact.isChecked = false;
    const [watch] = left;
    if (watch === undefined && fact.refreshed.length > 0) return this.#checkIn(fact, limits.progressCheckMs);
    if (watch === undefined) return this.#found(fact, version);
    fact.refreshed = [...left, ...fact.refreshed];
    // Version 1 stands for any version: the response has the version that the cache has reached.
    fact.isChecked = true;
    this.#list(fact, watch, "1", ({ version: cached }) => this.#looked(fact, cached));
  }

  #looked(fact: Fact, cached: string): void {
    fact.isChecked = false;
    if (cached === "" && !fact.isMissing) fact.refreshed = [];
    else if (compareVersions(cached, fact.version) >= 0) this.#found(fact, cached);
    else {
      if (!fact.isMissing) this.#miss(fact, cached);
      this.#checkIn(fact, watchLimits.progressAgainMs);
    }
  }

  #miss(fact: Fact, version: string): void {
    fact.isMissing = true;
    const { clock, journal } = this.#parts;
    const { backend, resource, version: etcdVersion, askedAt } = fact;
    const lateMs = clock.now() - askedAt;
    journal.write({ kind: "cache.progress_delayed", backend, resource, version, etcdVersion, lateMs });
  }

  /** The cache has reached this version, or no watch there needs it any more. */
  #found(fact: Fact, version: string): void {
    const { clock, journal } = this.#parts;
    const { backend, resource, refreshed, askedAt } = fact;
    fact.refreshed = [];
    const now = clock.now();
    if (fact.isMissing)
      journal.write({ kind: "cache.progress_restored", backend, resource, version, lateMs: now - askedAt });
    fact.isMissing = false;
    this.#again(refreshed.map((watch) => ({ watch, since: askedAt })));
  }
}

/** True if the watch has not reached this version. */
export function isBehind({ progress }: WatchSession, version: string): boolean {
  return compareVersions(progress.resumeVersion ?? "", version) < 0;
}
