/**
 * The load of each backend, as far as this process can see it: the requests under way, how long reads take, how often
 * the backend answers 429, and the utilisation that it reports. The counters are raised by each request; averages are
 * updated once a second. Pure.
 */
import type { Clock } from "../../base/clock.ts";
import { Interval } from "../../base/interval.ts";
import type { Field } from "../../h2/core/field.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import { loadLimits } from "./limits.ts";
import { reportIn, utilizationOf } from "./load-report.ts";
import type { RequestObserver } from "./request-observer.ts";

/** The average time until the final response head of one kind of reads. Old reads lose their weight. */
export class ReadTimes {
  #sum = 0;
  #count = 0;
  #ms = 0;
  #total = 0;

  add(ms: number): void {
    this.#sum += ms;
    this.#count += 1;
  }

  /** Adds the reads since the previous call to the average. A second with few reads changes it less. */
  update(): void {
    if (this.#count === 0) return;
    const mean = this.#sum / this.#count;
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

  /** True if enough reads were measured for a comparison with other backends. */
  get isKnown(): boolean {
    return this.#total >= loadLimits.comparedReads;
  }
}

export class BackendLoad {
  /** Number of plain requests that are placed at the backend and have not ended. */
  requestsActive = 0;
  /** Plain requests per second, as an average. */
  requestsPerSecond = 0;
  /** Number of 429s since the process started, except those of evictions. */
  refusals = 0;
  readonly gets = new ReadTimes();
  readonly lists = new ReadTimes();
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
    // A backend that was removed and added again also gets the ends of its earlier requests.
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

  /** The utilisation that the backend reported last; 1: all that it can serve. Undefined: no report, or an old one. */
  utilization(now: number): number | undefined {
    return now - this.#reportedAt < loadLimits.reportMs ? this.#utilization : undefined;
  }

  update(): void {
    this.gets.update();
    this.lists.update();
    const perSecond = (this.#begun * 1000) / loadLimits.lookMs;
    this.#begun = 0;
    this.requestsPerSecond += (perSecond - this.requestsPerSecond) * shareOf(loadLimits.lookMs);
  }
}

/** Returns the weight of the last `ms` in an average over `averageMs`. */
function shareOf(ms: number): number {
  return 1 - Math.exp(-ms / loadLimits.averageMs);
}

/** The loads of all backends of a cluster. */
export class BackendLoads extends Interval implements RequestObserver {
  readonly #clock: Clock;
  readonly #loads = new Map<string, BackendLoad>();

  constructor(clock: Clock) {
    super(clock, loadLimits.lookMs, () => this.#update());
    this.#clock = clock;
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

  isPaused(backend: string): boolean {
    return this.#loads.get(backend)?.isPaused(this.#clock.now()) === true;
  }

  /**
   * Returns how many times longer reads take here than at the other backends, at least 1. A backend is slow only if
   * both its reads of one object and its lists are slow, because lists of one client may be longer than those of all
   * others.
   */
  slowness(backend: string): number {
    const load = this.#loads.get(backend);
    if (load === undefined) return 1;
    const gets = this.#ratio(load, (one) => one.gets);
    const lists = this.#ratio(load, (one) => one.lists);
    return Math.max(1, Math.min(gets ?? lists ?? 1, lists ?? gets ?? 1));
  }

  /** Compares with the median of the other backends; undefined: too few reads. */
  #ratio(load: BackendLoad, timesOf: (load: BackendLoad) => ReadTimes): number | undefined {
    const own = timesOf(load);
    const others = Array.from(this.#loads.values())
      .filter((one) => one !== load && timesOf(one).isKnown)
      .map((one) => timesOf(one).ms)
      .toSorted((a, b) => a - b);
    const median = others[Math.floor((others.length - 1) / 2)];
    if (!own.isKnown || median === undefined) return undefined;
    return own.ms - median < loadLimits.slowReadMs ? 1 : own.ms / median;
  }

  #update(): void {
    for (const load of this.#loads.values()) load.update();
  }
}
