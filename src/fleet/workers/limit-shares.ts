/**
 * Divides each limit on requests among the workers, and adds up the counts of all workers. Nine tenths of a limit are
 * divided in proportion to the requests that the limit counted at each worker in the last second, because one worker
 * may serve all clients of a limit. One tenth is divided evenly, so that a worker without recent requests can pass its
 * first one. The shares of a limit add up to 1.
 */

/** What a limit has counted in one worker since the worker's start. */
export type LimitCounts = { readonly passed: number; readonly refused: number; readonly inFlight: number };

/** The counts of each limit, by `limitKey`. */
export type CountsByLimit = Readonly<Record<string, LimitCounts>>;

const evenShare = 0.1;

const none: LimitCounts = { passed: 0, refused: 0, inFlight: 0 };

function sumOf(one: LimitCounts, other: LimitCounts): LimitCounts {
  return {
    passed: one.passed + other.passed,
    refused: one.refused + other.refused,
    inFlight: one.inFlight + other.inFlight,
  };
}

export class LimitShares {
  /** The counts of each worker at the last call of `next`, by the worker's number. */
  #before = new Map<number, CountsByLimit>();
  /** By `limitKey`: the sum of the counts of all workers that have ended. Bounded by the number of limits. */
  #past: Record<string, LimitCounts> = {};

  /**
   * Returns each worker's share of each limit, by the worker's number. `counts`: the counts of each worker that serves,
   * by its number. `keys`: the `limitKey` of each limit.
   */
  next(
    counts: ReadonlyMap<number, CountsByLimit>,
    keys: Iterable<string>,
  ): Map<number, Record<string, number>> {
    const shares = new Map<number, Record<string, number>>();
    for (const worker of counts.keys()) shares.set(worker, {});
    for (const key of keys) {
      const demands = Array.from(counts, ([worker, all]) => this.#demandOf(worker, all, key));
      const total = demands.reduce((sum, demand) => sum + demand, 0);
      for (const [at, share] of Array.from(shares.values()).entries()) {
        const even = 1 / shares.size;
        share[key] = total === 0 ? even : evenShare * even + ((1 - evenShare) * (demands[at] ?? 0)) / total;
      }
    }
    this.#before = new Map(counts);
    return shares;
  }

  /**
   * Returns the number of requests that the limit has counted at the worker since the last call of `next`, plus the
   * number of requests in progress that the limit counts.
   */
  #demandOf(worker: number, counts: CountsByLimit, key: string): number {
    const { passed, refused, inFlight } = counts[key] ?? none;
    const before = this.#before.get(worker)?.[key] ?? none;
    return Math.max(0, passed + refused - before.passed - before.refused) + inFlight;
  }

  /** Keeps what a worker that ends has counted. */
  ended(worker: number, counts: CountsByLimit): void {
    this.#before.delete(worker);
    for (const [key, one] of Object.entries(counts))
      this.#past[key] = sumOf(this.#past[key] ?? none, { ...one, inFlight: 0 });
  }

  /** Returns what a limit has counted in all workers. */
  totalOf(key: string, counts: Iterable<CountsByLimit>): LimitCounts {
    let total = this.#past[key] ?? none;
    for (const all of counts) total = sumOf(total, all[key] ?? none);
    return total;
  }

  /** Forgets the counts of ended workers for limits that are no longer in force. `keys`: the limits in force. */
  keepOnly(keys: ReadonlySet<string>): void {
    this.#past = Object.fromEntries(Object.entries(this.#past).filter(([key]) => keys.has(key)));
  }
}
