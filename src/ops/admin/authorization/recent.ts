/** Caches the results of reviews for a limited time. Concurrent queries for one key share one review. */
import type { Clock } from "../../../base/clock.ts";
import { Failure } from "../../../base/failure.ts";
import { Lru } from "../../../base/lru.ts";

export type RecentParts<T> = {
  readonly clock: Clock;
  /** Maximum number of cached results. The least recently used result is evicted first. */
  readonly most: number;
  readonly keepMs: (value: T) => number;
};

type CachedResult<T> = { readonly value: T; readonly until: number };

export class Recent<T> {
  readonly #parts: RecentParts<T>;
  readonly #kept: Lru<string, CachedResult<T>>;
  readonly #asked = new Map<string, Promise<T | Failure>>();

  constructor(parts: RecentParts<T>) {
    this.#parts = parts;
    this.#kept = new Lru(parts.most);
  }

  /** Returns the cached result, unless it has expired. */
  get(key: string): T | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined) return undefined;
    this.#kept.delete(key);
    if (kept.until <= this.#parts.clock.now()) return undefined;
    this.#kept.set(key, kept);
    return kept.value;
  }

  /**
   * Returns the cached result; without one, calls `ask` and returns its result. Concurrent calls with the same key
   * share one call of `ask`. A Failure is not cached.
   */
  async find(key: string, ask: () => Promise<T | Failure>): Promise<T | Failure> {
    const known = this.get(key);
    if (known !== undefined) return known;
    return this.#asked.get(key) ?? this.#ask(key, ask);
  }

  #ask(key: string, ask: () => Promise<T | Failure>): Promise<T | Failure> {
    const asked = ask()
      .then((value) => {
        if (!(value instanceof Failure)) this.#keep(key, value);
        return value;
      })
      .finally(() => this.#asked.delete(key));
    this.#asked.set(key, asked);
    return asked;
  }

  #keep(key: string, value: T): void {
    const { clock, keepMs } = this.#parts;
    this.#kept.set(key, { value, until: clock.now() + keepMs(value) });
  }
}
