/**
 * The load of each backend as far as this process can measure it: its requests under way, the duration of reads, the
 * number of 429s, and the utilisation that the backend reports. Counters change with each request, averages once a
 * second. No I/O.
 */
import type { Clock } from "../../base/clock.ts";
import { Interval } from "../../base/interval.ts";
import type { Field } from "../../h2/core/field.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import { Capacity } from "./capacity.ts";
import { loadLimits } from "./limits.ts";
import { reportIn, utilizationOf } from "./load-report.ts";
import type { RequestObserver } from "./request-observer.ts";

/** The average time until the final response head, for one kind of reads. Old reads lose weight with time. */
export class ReadTimes {
  #sum = 0;
  #count = 0;
  #ms = 0;
  #total = 0;
  #latestMs = 0;

  add(ms: number): void {
    this.#sum += ms;
    this.#count += 1;
  }

  /**
   * Adds the reads since the previous call to the average. The fewer reads there were, the less the average changes.
   */
  update(): void {
    this.#latestMs = this.#count === 0 ? 0 : this.#sum / this.#count;
    if (this.#count === 0) return;
    const mean = this.#latestMs;
    const weight = Math.min(1, this.#count / loadLimits.fullReads);
    const isFirst = this.#total === 0;
    this.#ms += (mean - this.#ms) * (isFirst ? 1 : weight * shareOf(loadLimits.lookMs));
    this.#total += this.#count;
    this.#sum = 0;
    this.#count = 0;
  }

  get ms(): number {
    return this.#ms;
  }

  /** Average time in ms of the reads between the last two calls of `update`; 0: there were none. */
  get latestMs(): number {
    return this.#latestMs;
  }

  /** True if enough reads were measured for a comparison with other backends. */
  get isKnown(): boolean {
    return this.#total >= loadLimits.comparedReads;
  }
}

/** What is measured of one backend's load, for metrics and the JSON API. */
export type LoadFacts = {
  /**
   * Number of plain requests (neither watches nor long-running ones) that are assigned to the backend and have not
   * ended.
   */
  readonly requestsActive: number;
  readonly requestsPerSecond: number;
  /**
   * Average ms between sending a read and receiving its response head; 0: not measured. `getMs`: reads of one object.
   * `listMs`: lists.
   */
  readonly getMs: number;
  readonly listMs: number;
  /** Estimated load from short requests and transferred bytes, in units of one open stream. */
  readonly activity: number;
  /** The utilisation that the backend reports; undefined: it reports none. */
  readonly utilization: number | undefined;
  /** The share of its weight that the backend can serve, at most 1 (capacity.ts). */
  readonly capacity: number;
  readonly refusals: number;
};

export class BackendLoad {
  /**
   * Number of requests, other than watches and long-running ones, that are assigned to the backend and have not ended.
   */
  requestsActive = 0;
  /** Average number of requests per second, without watches and long-running requests. */
  requestsPerSecond = 0;
  /** Number of 429 responses since the process started, except responses to evictions. */
  refusals = 0;
  /**
   * Estimated load in units of one open stream. Short requests, and the bytes of responses and events, cause load that
   * the number of open streams does not show.
   */
  activity = 0;
  capacity = new Capacity();
  gets = new ReadTimes();
  lists = new ReadTimes();
  #begun = 0;
  #pausedUntil = 0;
  #utilization: number | undefined;
  #reportedAt = Number.NEGATIVE_INFINITY;

  began(info: RequestInfo): void {
    if (info.kind !== "plain") return;
    this.requestsActive += 1;
    this.#begun += 1;
  }

  ended(info: RequestInfo): void {
    // The count may be 0 already: if a backend was removed and added again, requests that began before its removal also
    // end here.
    if (info.kind === "plain" && this.requestsActive > 0) this.requestsActive -= 1;
  }

  read(info: RequestInfo, ms: number): void {
    if (info.verb === "get" && info.isResource) this.gets.add(ms);
    else if (info.verb === "list") this.lists.add(ms);
  }

  refused(now: number, head: readonly Field[]): void {
    this.refusals += 1;
    const seconds = Number(head.find(({ name }) => name === "retry-after")?.value ?? "x");
    if (!(seconds > 0)) return;
    this.#pausedUntil = Math.max(this.#pausedUntil, now + Math.min(seconds * 1000, loadLimits.mostPauseMs));
  }

  /** True if the backend has asked for a pause (429 with Retry-After), so that new clients go elsewhere. */
  isPaused(now: number): boolean {
    return now < this.#pausedUntil;
  }

  reported(now: number, report: Field): void {
    if (now - this.#reportedAt < loadLimits.reportPauseMs) return;
    this.#reportedAt = now;
    this.#utilization = utilizationOf(report);
  }

  /** The utilisation that the backend reported last; 1: fully used. Undefined: no report, or an old one. */
  utilization(now: number): number | undefined {
    return now - this.#reportedAt < loadLimits.reportMs ? this.#utilization : undefined;
  }

  /** Forgets the read times, and the capacity that was derived from them. */
  forget(): void {
    this.capacity = new Capacity();
    this.gets = new ReadTimes();
    this.lists = new ReadTimes();
  }

  facts(now: number): LoadFacts {
    const { requestsActive, requestsPerSecond, gets, lists, activity, capacity, refusals } = this;
    return {
      requestsActive,
      requestsPerSecond,
      getMs: gets.ms,
      listMs: lists.ms,
      activity,
      utilization: this.utilization(now),
      capacity: capacity.share,
      refusals,
    };
  }

  update(): void {
    this.gets.update();
    this.lists.update();
    const perSecond = (this.#begun * 1000) / loadLimits.lookMs;
    this.#begun = 0;
    this.requestsPerSecond += (perSecond - this.requestsPerSecond) * shareOf(loadLimits.lookMs);
  }
}

/** Returns the weight that the last `ms` milliseconds have in an exponential average with time constant `averageMs`. */
function shareOf(ms: number): number {
  return 1 - Math.exp(-ms / loadLimits.averageMs);
}

/** The loads of all backends of a cluster. */
export class BackendLoads extends Interval implements RequestObserver {
  readonly #clock: Clock;
  readonly #isWarm: (backend: string) => boolean;
  readonly #loads = new Map<string, BackendLoad>();
  #looks = 0;

  /** `isWarm`: returns true if the backend has been ready for so long that its caches are filled. */
  constructor(clock: Clock, isWarm: (backend: string) => boolean) {
    super(clock, loadLimits.lookMs, () => this.#update());
    this.#clock = clock;
    this.#isWarm = isWarm;
  }

  reconcile(backends: readonly string[]): void {
    for (const name of this.#loads.keys()) if (!backends.includes(name)) this.#loads.delete(name);
    for (const name of backends) if (!this.#loads.has(name)) this.#loads.set(name, new BackendLoad());
  }

  of(backend: string): BackendLoad | undefined {
    return this.#loads.get(backend);
  }

  began(backend: string, info: RequestInfo): void {
    this.#loads.get(backend)?.began(info);
  }

  answered(backend: string, info: RequestInfo, ms: number, head: readonly Field[]): void {
    const load = this.#loads.get(backend);
    if (load === undefined) return;
    const status = Number(head[0]?.value);
    if (status < 300 && info.kind === "plain") load.read(info, ms);
    // An eviction gets a 429 because of a PodDisruptionBudget, which says nothing about the backend's load.
    else if (status === 429 && info.subresource !== "eviction") load.refused(this.#clock.now(), head);
    const report = reportIn(head);
    if (report !== undefined) load.reported(this.#clock.now(), report);
  }

  ended(backend: string, info: RequestInfo): void {
    this.#loads.get(backend)?.ended(info);
  }

  facts(backend: string): LoadFacts {
    return (this.#loads.get(backend) ?? new BackendLoad()).facts(this.#clock.now());
  }

  isPaused(backend: string): boolean {
    return this.#loads.get(backend)?.isPaused(this.#clock.now()) === true;
  }

  /**
   * Returns the ratio of this backend's read times to those of the other backends, but at least 1. A backend is slow
   * only if both its reads of one object and its lists are slow: slow lists alone may come from one client with large
   * lists.
   */
  slowness(backend: string): number {
    const load = this.#loads.get(backend);
    if (load === undefined) return 1;
    const gets = this.#ratio(load, (one) => one.gets);
    const lists = this.#ratio(load, (one) => one.lists);
    return Math.max(1, Math.min(gets ?? lists ?? 1, lists ?? gets ?? 1));
  }

  /**
   * Returns the backend's average read time divided by the median of the other backends' averages; undefined: too few
   * reads.
   */
  #ratio(load: BackendLoad, timesOf: (load: BackendLoad) => ReadTimes): number | undefined {
    const own = timesOf(load);
    const others = Array.from(this.#loads.values(), timesOf).filter(
      (times) => times !== own && times.isKnown,
    );
    const median = medianOf(others.map(({ ms }) => ms));
    if (!own.isKnown || median === undefined) return undefined;
    return own.ms - median < loadLimits.slowReadMs ? 1 : own.ms / median;
  }

  /** Returns the share of its weight that a backend can serve. */
  capacity(backend: string): number {
    return this.#loads.get(backend)?.capacity.share ?? 1;
  }

  /** Forgets the measured times of a backend that has come back: it has a new process, and maybe another machine. */
  returned(backend: string): void {
    this.#loads.get(backend)?.forget();
  }

  #update(): void {
    for (const load of this.#loads.values()) load.update();
    this.#looks += 1;
    if (this.#looks % loadLimits.capacityLooks === 0) this.#regulate();
  }

  #regulate(): void {
    const warm = Array.from(this.#loads).filter(([name]) => this.#isWarm(name));
    if (warm.length < 2) return;
    for (const [name, { capacity }] of warm) capacity.regulate(this.#pressure(name, warm));
  }

  /**
   * Returns the ratio of a backend's load to that of the other backends whose caches are warm. The ratio is that of the
   * utilisations if all these backends report one, because a utilisation includes the load by clients of other proxies.
   * Otherwise it is the ratio of the read times.
   */
  #pressure(backend: string, warm: readonly (readonly [string, BackendLoad])[]): number {
    const now = this.#clock.now();
    const reports = new Map(warm.map(([name, load]) => [name, load.utilization(now)]));
    const own = reports.get(backend);
    reports.delete(backend);
    const others = Array.from(reports.values()).filter((one) => one !== undefined);
    const median = medianOf(others);
    if (own === undefined || median === undefined || others.length < reports.size)
      return this.slowness(backend);
    return own - median < loadLimits.alikeUtilization ? 1 : own / Math.max(median, Number.EPSILON);
  }
}

function medianOf(values: readonly number[]): number | undefined {
  return values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)];
}
