/** The source of all choices in a run, so a seed determines the whole run. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
    // Seeds that differ little give similar first numbers, so these are discarded.
    for (let count = 0; count < 8; count += 1) this.next();
  }

  /**
   * Returns a number in [0, 1) by mulberry32. Its 32 bits of state are enough for the several thousand choices of a
   * run.
   */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** Returns an integer in [least, most]. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(from: readonly T[]): T {
    const picked = from[this.whole(0, from.length - 1)];
    if (picked === undefined) throw new Error("nothing to pick from");
    return picked;
  }

  /** Returns a size up to `most`. All orders of magnitude are equally likely. */
  size(most: number): number {
    return this.chance(0.1) ? 0 : Math.floor(2 ** (this.next() * Math.log2(most + 1)));
  }
}
