/** One counter of `BackendCounts`. It stays valid after its backend was removed, and then counts for "other". */
export class BackendCount<K extends string = string> {
  readonly backend: string;
  readonly key: K;
  /**
   * The sum to which `add` adds: this counter's own; after the removal of its backend, that of "other". So the owner of
   * a counter can continue to add to it without a lookup.
   */
  #sum = { count: 0 };

  constructor(backend: string, key: K) {
    this.backend = backend;
    this.key = key;
  }

  get count(): number {
    return this.#sum.count;
  }

  add(by: number): void {
    this.#sum.count += by;
  }

  /** Adds this count to `other`. Whatever is added later also counts there. */
  mergeInto(other: BackendCount<K>): void {
    other.add(this.count);
    this.#sum = other.#sum;
  }
}

/** Counts by backend and by `key`, such as the outcome. The removed backends are summed under "other". */
export class BackendCounts<K extends string = string> {
  readonly #counts = new Map<string, BackendCount<K>>();

  get size(): number {
    return this.#counts.size;
  }

  get all(): readonly Pick<BackendCount<K>, "backend" | "key" | "count">[] {
    return Array.from(this.#counts.values(), ({ backend, key, count }) => ({ backend, key, count }));
  }

  /** Returns the counter. `backend`: "" if the counted request had none. */
  of(backend: string, key: K): BackendCount<K> {
    const id = `${key} ${backend}`;
    const known = this.#counts.get(id);
    if (known !== undefined) return known;
    const count = new BackendCount(backend, key);
    this.#counts.set(id, count);
    return count;
  }

  /**
   * Adds the counts of removed backends to "other". Otherwise the counts would grow without limit, because backends
   * with new names may be added again and again.
   */
  reconcile(backends: readonly string[]): void {
    const kept = new Set(["", "other", ...backends]);
    for (const [id, count] of this.#counts) {
      if (kept.has(count.backend)) continue;
      this.#counts.delete(id);
      count.mergeInto(this.of("other", count.key));
    }
  }
}
