/**
 * Counts how many requests of one subject, such as an API group, have failed and succeeded at each backend in a sliding
 * window, and finds a backend at which these requests fail although they succeed at another backend. No I/O.
 */
import { Lru } from "../../base/lru.ts";

export const outcomeLimits = {
  /** Maximum number of subjects counted at once. A cluster has a dozen aggregated APIs, and as many webhooks. */
  subjects: 32,
  /**
   * Ms of one part of the window, and the number of parts. The whole window is a minute long, because a controller may
   * send only one request in 15 s.
   */
  partMs: 10_000,
  parts: 6,
  /**
   * A backend is also reported, whatever the window contains, if its latest `runOutcomes` requests have all failed, and
   * in the same period the latest `runOutcomes` requests at another backend have all succeeded. A request counts only
   * if it ends at least `runStepMs` ms after the previous one that counts, so this period lasts at least 4 s. It must
   * not be shorter, because backends reconnect at different times after a server restart. Without this rule, a backend
   * would stay unreported for as long as the window contains its earlier successes, or failures that all backends had
   * in common.
   */
  runOutcomes: 6,
  runStepMs: 800,
  /**
   * A backend is reported after `failures` failures, if at least the share `failingShare` of its requests has failed.
   */
  failures: 4,
  failingShare: 0.7,
  /**
   * A backend is compared only with backends that have at least `successes` successes, and at most the share
   * `healthyShare` of failures. Of several successes without a failure at another backend between them, only the first
   * counts towards `successes`: one event may make many requests fail at the same time, and these failures must not be
   * compared with successes from before or after the event.
   */
  successes: 3,
  healthyShare: 0.1,
} as const;

export type Outcomes = { readonly backend: string; readonly failed: number; readonly total: number };

/**
 * A backend at which most requests of a subject fail. `peer`: of the backends at which they succeed, the one with the
 * most requests.
 */
export type Outlier = Outcomes & { readonly peer: Outcomes };

/** Consecutive requests of one backend with the same outcome. */
class Run {
  readonly hasFailed: boolean;
  /** Clock reading of the first outcome. */
  readonly beganAt: number;
  /** Clock readings of the latest outcomes that count (`runStepMs`); the latest one comes last. */
  readonly #times: number[] = [];

  constructor(hasFailed: boolean, now: number) {
    this.hasFailed = hasFailed;
    this.beganAt = now;
  }

  add(now: number): void {
    const { runOutcomes, runStepMs } = outcomeLimits;
    if (now - (this.#times.at(-1) ?? Number.NEGATIVE_INFINITY) < runStepMs) return;
    this.#times.push(now);
    if (this.#times.length > runOutcomes) this.#times.shift();
  }

  /** True if at least `runOutcomes` outcomes count that are not older than `start` and are still in the window. */
  isLongSince(start: number, now: number): boolean {
    const { partMs, parts, runOutcomes } = outcomeLimits;
    const [first = 0] = this.#times;
    return this.#times.length === runOutcomes && first >= start && now - first < partMs * parts;
  }
}

type Sums = Readonly<Record<"failed" | "total" | "alternating", number>>;

class Window {
  /** The latest consecutive requests with the same outcome. */
  #run = new Run(false, 0);
  readonly #failed = new Uint32Array(outcomeLimits.parts);
  readonly #total = new Uint32Array(outcomeLimits.parts);
  /** By part of the window: number of the successes that count towards `outcomeLimits.successes`. */
  readonly #alternating = new Uint32Array(outcomeLimits.parts);
  /** True if another backend has had a failure since the latest success here, or if there was no success yet. */
  #isAlternating = true;
  #part = 0;

  add(hasFailed: boolean, now: number): void {
    this.#turn(now);
    const at = this.#part % outcomeLimits.parts;
    this.#total[at] = (this.#total[at] ?? 0) + 1;
    if (hasFailed) this.#failed[at] = (this.#failed[at] ?? 0) + 1;
    else if (this.#isAlternating) {
      this.#alternating[at] = (this.#alternating[at] ?? 0) + 1;
      this.#isAlternating = false;
    }
    if (hasFailed !== this.#run.hasFailed) this.#run = new Run(hasFailed, now);
    this.#run.add(now);
  }

  otherFailed(): void {
    this.#isAlternating = true;
  }

  /** True if these requests have only failed here, and only succeeded at `peer`, for long enough to compare. */
  isWorseThan(peer: Window, now: number): boolean {
    const [own, other] = [this.#run, peer.#run];
    const start = Math.max(own.beganAt, other.beganAt);
    return own.hasFailed && !other.hasFailed && [own, other].every((run) => run.isLongSince(start, now));
  }

  sums(now: number): Sums {
    this.#turn(now);
    let failed = 0;
    let total = 0;
    let alternating = 0;
    for (let at = 0; at < outcomeLimits.parts; at += 1) {
      failed += this.#failed[at] ?? 0;
      total += this.#total[at] ?? 0;
      alternating += this.#alternating[at] ?? 0;
    }
    return { failed, total, alternating };
  }

  #turn(now: number): void {
    const part = Math.floor(now / outcomeLimits.partMs);
    const passed = Math.min(part - this.#part, outcomeLimits.parts);
    for (let step = 1; step <= passed; step += 1) {
      const at = (part - passed + step) % outcomeLimits.parts;
      this.#failed[at] = 0;
      this.#total[at] = 0;
      this.#alternating[at] = 0;
    }
    this.#part = part;
  }
}

export class PeerOutcomes {
  readonly #subjects = new Lru<string, Map<string, Window>>(outcomeLimits.subjects);

  /** True if no failures are counted, so that successes need not be reported. */
  get isEmpty(): boolean {
    return this.#subjects.size === 0;
  }

  get subjects(): Iterable<string> {
    return this.#subjects.keys();
  }

  /**
   * Counts a failure. If far more requests fail at this backend than at another one, returns the counts of both;
   * otherwise undefined.
   */
  failed(subject: string, backend: string, now: number): Outlier | undefined {
    const windows = this.#subjects.get(subject) ?? new Map<string, Window>();
    // Makes this subject the most recently used entry, so that it is evicted last.
    this.#subjects.set(subject, windows);
    const window = windowOf(windows, backend);
    window.add(true, now);
    for (const other of windows.values()) if (other !== window) other.otherFailed();
    return outlierIn(windows, backend, now);
  }

  /** Counts a success. Successes before the subject's first failure are not counted. */
  succeeded(subject: string, backend: string, now: number): void {
    const windows = this.#subjects.get(subject);
    if (windows !== undefined) windowOf(windows, backend).add(false, now);
  }

  /** Forgets the subjects that have not failed within the window. */
  forgetOld(now: number): void {
    for (const [subject, windows] of this.#subjects)
      if (windows.values().every((window) => window.sums(now).failed === 0)) this.#subjects.delete(subject);
  }

  reconcile(names: readonly string[]): void {
    for (const windows of this.#subjects.values())
      for (const name of windows.keys()) if (!names.includes(name)) windows.delete(name);
  }
}

function windowOf(windows: Map<string, Window>, backend: string): Window {
  const window = windows.get(backend) ?? new Window();
  windows.set(backend, window);
  return window;
}

function outlierIn(windows: ReadonlyMap<string, Window>, backend: string, now: number): Outlier | undefined {
  const window = windows.get(backend);
  if (window === undefined) return undefined;
  const own = { backend, ...window.sums(now) };
  const isFailing =
    own.failed >= outcomeLimits.failures && own.failed >= outcomeLimits.failingShare * own.total;
  const peers = Array.from(windows, ([name, other]) => ({
    counts: { backend: name, ...other.sums(now) },
    isBetter: window.isWorseThan(other, now),
  }));
  const [peer] = peers
    .filter(
      ({ counts, isBetter }) => isBetter || (isFailing && counts.backend !== backend && isHealthy(counts)),
    )
    .map(({ counts }) => counts)
    .toSorted((a, b) => b.total - a.total);
  return peer && { ...own, peer };
}

function isHealthy({ failed, total, alternating }: Sums): boolean {
  return alternating >= outcomeLimits.successes && failed <= outcomeLimits.healthyShare * total;
}
