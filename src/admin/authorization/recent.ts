/** A cache of answers with a time to live. Concurrent queries for one key share one request. */
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { Lru } from "../../base/lru.ts";

export type RecentParts<T> = {
  readonly clock: Clock;
  /** Capacity; the least recently queried answer is evicted first. */
  readonly most: number;
  readonly keepMs: (value: T) => number;
};

type Kept<T> = { readonly value: T; readonly until: number };

export class Recent<T> {
  readonly #parts: RecentParts<T>;
  readonly #kept: Lru<string, Kept<T>>;
  readonly #asked = new Map<string, Promise<T | Failure>>();

  constructor(parts: RecentParts<T>) {
    this.#parts = parts;
    this.#kept = new Lru(parts.most);
  }

  /** Returns an answer that has not expired. */
  get(key: string): T | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined) return undefined;
    this.#kept.delete(key);
    if (kept.until <= this.#parts.clock.now()) return undefined;
    this.#kept.set(key, kept);
    return kept.value;
  }

  /** Returns the cached answer, or the result of `ask`. A Failure is returned to all waiting queries, and not cached. */
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
