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
   * The comparison is made twice: over the whole window, and over this many of its latest parts. An outage of all
   * backends leaves failures of every backend in the window, which would hide a faulty backend. Soon after the outage,
   * the latest parts contain none of them.
   */
  recentParts: 2,
  /**
   * A backend is reported after `failures` failures, if at least the share `failingShare` of its requests has failed.
   */
  failures: 4,
  failingShare: 0.7,
  /**
   * A backend is compared only with backends that have at least `successes` successes, and at most the share
   * `healthyShare` of failures.
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

class Window {
  readonly #failed = new Uint32Array(outcomeLimits.parts);
  readonly #total = new Uint32Array(outcomeLimits.parts);
  #part = 0;

  add(hasFailed: boolean, now: number): void {
    this.#turn(now);
    const at = this.#part % outcomeLimits.parts;
    this.#total[at] = (this.#total[at] ?? 0) + 1;
    if (hasFailed) this.#failed[at] = (this.#failed[at] ?? 0) + 1;
  }

  /** Returns the sums over the latest `parts` parts of the window. */
  sums(
    now: number,
    parts: number = outcomeLimits.parts,
  ): { readonly failed: number; readonly total: number } {
    this.#turn(now);
    let failed = 0;
    let total = 0;
    for (let back = 0; back < parts; back += 1) {
      const at = (this.#part - back + outcomeLimits.parts) % outcomeLimits.parts;
      failed += this.#failed[at] ?? 0;
      total += this.#total[at] ?? 0;
    }
    return { failed, total };
  }

  #turn(now: number): void {
    const part = Math.floor(now / outcomeLimits.partMs);
    const passed = Math.min(part - this.#part, outcomeLimits.parts);
    for (let step = 1; step <= passed; step += 1) {
      const at = (part - passed + step) % outcomeLimits.parts;
      this.#failed[at] = 0;
      this.#total[at] = 0;
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
    windowOf(windows, backend).add(true, now);
    const { parts, recentParts } = outcomeLimits;
    return (
      outlierIn(windows, backend, { now, parts }) ?? outlierIn(windows, backend, { now, parts: recentParts })
    );
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

function outlierIn(
  windows: ReadonlyMap<string, Window>,
  backend: string,
  { now, parts }: { readonly now: number; readonly parts: number },
): Outlier | undefined {
  const all = Array.from(
    windows,
    ([name, window]): Outcomes => ({ backend: name, ...window.sums(now, parts) }),
  );
  const own = all.find((one) => one.backend === backend);
  if (own === undefined || own.failed < outcomeLimits.failures) return undefined;
  if (own.failed < outcomeLimits.failingShare * own.total) return undefined;
  const peers = all.filter((one) => one.backend !== backend && isHealthy(one));
  const [peer] = peers.toSorted((a, b) => b.total - a.total);
  return peer === undefined ? undefined : { ...own, peer };
}

function isHealthy({ failed, total }: Outcomes): boolean {
  return total - failed >= outcomeLimits.successes && failed <= outcomeLimits.healthyShare * total;
}
