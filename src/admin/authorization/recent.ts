/** Answers that count for a while. Whoever asks for what is being asked for already waits for the same answer. */
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { Lru } from "../../base/lru.ts";

export type RecentParts<T> = {
  readonly clock: Clock;
  /** How many are kept; the one that was asked for longest ago goes first. */
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

  /** Of those that count. */
  get(key: string): T | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined) return undefined;
    this.#kept.delete(key);
    if (kept.until <= this.#parts.clock.now()) return undefined;
    this.#kept.set(key, kept);
    return kept.value;
  }

  /** The answer that counts, or that `ask` brings; a Failure is nobody's but of those that wait for it. */
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
