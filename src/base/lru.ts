/**
 * A Map of at most `limit` entries. `set` makes its entry the newest. If there are too many entries, `set` drops the
 * oldest one.
 */
export class Lru<K, V> extends Map<K, V> {
  readonly #limit: number;

  constructor(limit: number) {
    super();
    this.#limit = limit;
  }

  override set(key: K, value: V): this {
    this.delete(key);
    super.set(key, value);
    if (this.size <= this.#limit) return this;
    const { value: oldest, done } = this.keys().next();
    if (done !== true) this.delete(oldest);
    return this;
  }
}
