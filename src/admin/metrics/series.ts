/** Values of one metric by labels, up to a maximum number of series; the rest is summed (A54). */
import { limits } from "../../base/limits.ts";

/** Label values in the metric's order, and the number. */
export type Row = readonly [labels: readonly string[], value: number];

type Sum = { readonly labels: readonly string[]; value: number };

export class Series {
  readonly #cap: number;
  readonly #sums = new Map<string, Sum>();

  constructor(cap: number = limits.familySeries) {
    this.#cap = cap;
  }

  /** The first series stay: a flood of new labels cannot displace the real ones. */
  add(labels: readonly string[], value: number): void {
    const clipped = labels.map((label) => label.slice(0, limits.labelChars));
    if (this.#addTo(clipped, value, this.#cap - 1)) return;
    this.#addTo(
      clipped.map(() => "other"),
      value,
      this.#cap,
    );
  }

  get rows(): Row[] {
    return [...this.#sums.values()].map(({ labels, value }) => [labels, value]);
  }

  #addTo(labels: readonly string[], value: number, cap: number): boolean {
    const key = labels.join("\0");
    const known = this.#sums.get(key);
    if (known === undefined && this.#sums.size >= cap) return false;
    if (known === undefined) this.#sums.set(key, { labels, value });
    else known.value += value;
    return true;
  }
}
