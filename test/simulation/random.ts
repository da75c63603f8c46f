/** Every choice of a run comes from one of these, so a seed is the whole run. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
    // Neighbouring seeds begin alike: the first numbers of each are thrown away.
    for (let count = 0; count < 8; count += 1) this.next();
  }

  /** [0, 1), by mulberry32: 32 bits of state are plenty for a run of some thousand choices. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number in [least, most]. */
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

  /** Sizes of all magnitudes up to `most`, small ones as likely as large ones. */
  size(most: number): number {
    return this.chance(0.1) ? 0 : Math.floor(2 ** (this.next() * Math.log2(most + 1)));
  }
}
