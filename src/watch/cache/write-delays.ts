/**
 * Measures how late each backend's watches deliver a write. The response to a write states the version that the write
 * has created. The delay begins when this response arrives. It ends when a watch of the whole resource at the backend
 * delivers an event of this version or a newer one. If the event arrives before the response, the delay is 0. Both
 * times are clock readings of this process.
 */
import { Histogram, watchDelayBounds } from "../../base/histogram.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import { watchLimits } from "../limits.ts";

/** A write whose response has arrived. */
export type WriteMark = { readonly version: string; readonly at: number };

/** Records how far one backend's watches of a resource have caught up with the writes to the resource. */
export class WriteProgress {
  readonly backend: string;
  readonly writes: ResourceWrites;
  readonly #histogram: Histogram;
  /**
   * Newest version that a watch of the whole resource has delivered, or from which such a watch was requested; "": none
   * yet.
   */
  version = "";
  /** Sequence number of the oldest measured write that the backend has not delivered. */
  next = 0;
  #watchedSince = Number.POSITIVE_INFINITY;
  readonly #worst: RecentWorst = new RecentWorst();

  constructor(backend: string, writes: ResourceWrites, histogram: Histogram) {
    this.backend = backend;
    this.writes = writes;
    this.#histogram = histogram;
  }

  /** Called when the backend gets its first watch of the whole resource. */
  begin(now: number): void {
    this.#watchedSince = now;
    this.next = this.writes.end;
  }

  /**
   * Called for each watch of the whole resource. `version`: the version from which the watch was requested. The watch
   * delivers only newer versions.
   */
  startFrom(version: string): void {
    if (compareVersions(version, this.version) > 0) this.version = version;
  }

  /** Called when the last watch of the whole resource has left the backend. */
  stop(): void {
    this.#watchedSince = Number.POSITIVE_INFINITY;
    this.next = this.writes.end;
  }

  /**
   * True if a watch of the whole resource has been open for `sightMs`. Until then its initial state may still arrive,
   * which does not show the delay of a write.
   */
  isMeasuredAt(now: number): boolean {
    return now - this.#watchedSince >= watchLimits.sightMs;
  }

  get isWatched(): boolean {
    return this.#watchedSince !== Number.POSITIVE_INFINITY;
  }

  /** Called when a watch has delivered `version`, which is newer than all earlier versions. */
  reached(version: string, now: number): void {
    this.version = version;
    if (this.next < this.writes.end) this.writes.delivered(this, now);
  }

  observe(delayMs: number, now: number): void {
    this.#histogram.observe(delayMs / 1000);
    this.#worst.add(delayMs, now);
  }

  /** Ms since the response to the oldest write that the backend has not delivered; 0: no write is missing. */
  lagMs(now: number): number {
    const missing = this.writes.markAt(this.next);
    return missing === undefined ? 0 : Math.max(0, now - missing.at);
  }

  /** Longest delay of the writes that were delivered in the last 10 to 20 s; 0: none was delivered. */
  recentMs(now: number): number {
    return this.#worst.at(now);
  }
}

/** The greatest value in the present interval and the previous one. Each interval lasts `recentDelayMs`. */
class RecentWorst {
  #since = 0;
  #present = 0;
  #previous = 0;

  add(value: number, now: number): void {
    this.#turn(now);
    if (value > this.#present) this.#present = value;
  }

  at(now: number): number {
    this.#turn(now);
    return Math.max(this.#present, this.#previous);
  }

  #turn(now: number): void {
    const past = now - this.#since;
    if (past < watchLimits.recentDelayMs) return;
    this.#previous = past < 2 * watchLimits.recentDelayMs ? this.#present : 0;
    this.#present = 0;
    this.#since = now;
  }
}

/**
 * The latest writes to one resource. A write is kept until all backends have delivered it, but at most for
 * `writeMarkMs`.
 */
export class ResourceWrites {
  readonly resource: string;
  readonly #caches = new Map<string, WriteProgress>();
  /** The measured writes, oldest first. Invariant: versions and times increase. */
  #marks: WriteMark[] = [];
  /** Sequence number of `#marks[0]`. */
  #base = 0;
  #last = "";

  constructor(resource: string) {
    this.resource = resource;
  }

  get all(): Iterable<WriteProgress> {
    return this.#caches.values();
  }

  get isWatched(): boolean {
    return this.#caches.values().some(({ isWatched }) => isWatched);
  }

  /** Sequence number that the next measured write will get. */
  get end(): number {
    return this.#base + this.#marks.length;
  }

  /** Newest known version of the resource. A write that is sent now gets a newer version, or changes nothing. */
  get newest(): string {
    let newest = this.#last;
    for (const { version } of this.#caches.values())
      if (compareVersions(version, newest) > 0) newest = version;
    return newest;
  }

  markAt(sequence: number): WriteMark | undefined {
    return this.#marks[sequence - this.#base];
  }

  add(progress: WriteProgress): void {
    this.#caches.set(progress.backend, progress);
  }

  remove(backend: string): boolean {
    return this.#caches.delete(backend);
  }

  /**
   * Records the response to a write. `version`: the version in the response. `newest`: the value of `this.newest` when
   * the request was sent. If `version` is not newer than `newest`, the write has changed nothing. If too many writes
   * are undelivered, the new one is not measured.
   */
  wrote(version: string, newest: string, now: number): void {
    this.#dropOld(now);
    if (!this.#hasRoom(now)) return;
    if (compareVersions(version, newest) <= 0 || compareVersions(version, this.#last) <= 0) return;
    this.#last = version;
    const sequence = this.end;
    this.#marks.push({ version, at: now });
    for (const cache of this.#caches.values()) {
      if (cache.next !== sequence) continue;
      const isDelivered = compareVersions(cache.version, version) >= 0;
      if (isDelivered && cache.isMeasuredAt(now)) cache.observe(0, now);
      if (isDelivered || !cache.isMeasuredAt(now)) cache.next += 1;
    }
    this.#dropDelivered();
  }

  /**
   * True if the delay of one more write may be measured. If false, the new write is not measured. The older writes
   * stay, because they show the longest delay.
   */
  #hasRoom(now: number): boolean {
    const { length } = this.#marks;
    if (length < watchLimits.writeMarksClose) return true;
    const last = this.#marks.at(-1)?.at ?? 0;
    return length < watchLimits.writeMarks && now - last >= watchLimits.writeMarkEveryMs;
  }

  delivered(cache: WriteProgress, now: number): void {
    let mark = this.markAt(cache.next);
    while (mark !== undefined && compareVersions(mark.version, cache.version) <= 0) {
      cache.observe(now - mark.at, now);
      cache.next += 1;
      mark = this.markAt(cache.next);
    }
    this.#dropDelivered();
  }

  /** Moves the times of the writes `ms` later, because the proxy read no events while its event loop was stalled. */
  discountStall(ms: number): void {
    this.#marks = this.#marks.map(({ version, at }) => ({ version, at: at + ms }));
  }

  #dropDelivered(): void {
    let first = this.end;
    for (const { next } of this.#caches.values()) if (next < first) first = next;
    this.#dropBefore(first);
  }

  #dropOld(now: number): void {
    let old = 0;
    while (now - (this.#marks[old]?.at ?? now) >= watchLimits.writeMarkMs) old += 1;
    if (old === 0) return;
    this.#dropBefore(this.#base + old);
    for (const cache of this.#caches.values()) cache.next = Math.max(cache.next, this.#base);
  }

  #dropBefore(sequence: number): void {
    if (sequence === this.#base) return;
    this.#marks.splice(0, sequence - this.#base);
    this.#base = sequence;
  }
}

/** The longest delay, in ms, with which a backend's watches deliver writes, and the resource with this delay. */
export type BackendDelay = { readonly resource: string; readonly delayMs: number };

export class WriteDelays {
  readonly #resources = new Map<string, ResourceWrites>();
  /** Delays in seconds, by backend and API group. */
  readonly #histograms = new Map<string, Map<string, Histogram>>();

  /**
   * Returns the progress of the backend's watches of the whole resource; undefined: too many resources are measured.
   */
  of(backend: string, resource: string): WriteProgress | undefined {
    const known = this.#resources.get(resource);
    if (known === undefined && !this.#makeRoom()) return undefined;
    const writes = known ?? new ResourceWrites(resource);
    this.#resources.set(resource, writes);
    const progress = new WriteProgress(backend, writes, this.#histogramOf(backend, groupOf(resource)));
    progress.stop();
    writes.add(progress);
    return progress;
  }

  /**
   * Returns the latest writes to the resource; undefined if they are not measured, mostly because no backend has had a
   * watch of the whole resource.
   */
  writesTo(resource: string): ResourceWrites | undefined {
    return this.#resources.get(resource);
  }

  get all(): Iterable<ResourceWrites> {
    return this.#resources.values();
  }

  /** Delays in seconds, by backend and API group. */
  get histograms(): ReadonlyMap<string, ReadonlyMap<string, Histogram>> {
    return this.#histograms;
  }

  /**
   * Longest time in ms for which the backend has not delivered a write; 0: none is missing; undefined: no watch of a
   * whole resource is open at the backend.
   */
  lagMs(backend: string, now: number): number | undefined {
    return this.#worstOf(backend, (cache) => cache.lagMs(now))?.delayMs;
  }

  /**
   * Returns the longest delay of a write that the backend has not delivered yet, or has delivered in the last 10 to 20
   * s. Returns undefined if no watch of a whole resource is open at the backend.
   */
  recent(backend: string, now: number): BackendDelay | undefined {
    return this.#worstOf(backend, (cache) => Math.max(cache.lagMs(now), cache.recentMs(now)));
  }

  #worstOf(backend: string, delayOf: (cache: WriteProgress) => number): BackendDelay | undefined {
    let worst: BackendDelay | undefined;
    for (const { resource, all } of this.#resources.values())
      for (const cache of all) {
        if (cache.backend !== backend || !cache.isWatched) continue;
        const delayMs = delayOf(cache);
        if (worst === undefined || delayMs > worst.delayMs) worst = { resource, delayMs };
      }
    return worst;
  }

  /** Forgets the progress of a dead or removed backend, because a backend that returns has new caches. */
  forget(backend: string): void {
    for (const writes of this.#resources.values()) writes.remove(backend);
  }

  reconcile(names: readonly string[]): void {
    for (const name of this.#histograms.keys()) if (!names.includes(name)) this.#histograms.delete(name);
  }

  #histogramOf(backend: string, group: string): Histogram {
    const groups = this.#histograms.get(backend) ?? new Map<string, Histogram>();
    this.#histograms.set(backend, groups);
    const isNamed = groups.has(group) || groups.size < watchLimits.delayGroups;
    const named = isNamed ? group : "other";
    const histogram = groups.get(named) ?? new Histogram(watchDelayBounds);
    groups.set(named, histogram);
    return histogram;
  }

  #makeRoom(): boolean {
    if (this.#resources.size < watchLimits.comparedResources) return true;
    for (const [resource, writes] of this.#resources)
      if (!writes.isWatched) return this.#resources.delete(resource);
    return false;
  }
}

function groupOf(resource: string): string {
  return resource.slice(0, resource.indexOf("/"));
}
