/** Counts the events that were forwarded to clients, by the backend whose stream delivered them. */

/**
 * The counter of one backend's streams. An event only increments `sum.events`, so that it needs no lookup. Once the
 * backend was removed, `sum` is the sum of all removed backends.
 */
export type EventCount = { sum: { events: number } };

export class EventCounts {
  readonly #byBackend = new Map<string, EventCount>();
  readonly #removed = { events: 0 };

  /** Returns the counter of the backend's streams. It stays valid after the backend was removed. */
  of(backend: string): EventCount {
    const known = this.#byBackend.get(backend);
    if (known !== undefined) return known;
    const count = { sum: { events: 0 } };
    this.#byBackend.set(backend, count);
    return count;
  }

  /**
   * Adds the counts of removed backends to "other". Otherwise the counts would grow without limit, because backends
   * with new names may be added again and again.
   */
  reconcile(backends: readonly string[]): void {
    for (const [backend, count] of this.#byBackend) {
      if (backends.includes(backend)) continue;
      this.#removed.events += count.sum.events;
      count.sum = this.#removed;
      this.#byBackend.delete(backend);
    }
  }

  /** Number of events by backend. The removed backends are summed under "other". */
  get all(): ReadonlyMap<string, number> {
    const all = new Map(Array.from(this.#byBackend, ([backend, { sum }]) => [backend, sum.events]));
    if (this.#removed.events > 0) all.set("other", this.#removed.events);
    return all;
  }
}
