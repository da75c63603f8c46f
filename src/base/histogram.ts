/** Bounds in seconds of kube-apiserver's buckets for request durations, so that operators can compare histograms. */
export const requestBounds: readonly number[] = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
];

/** Bounds in seconds for round-trip times: from one machine to another continent, and the delays of lost packets. */
export const rttBounds: readonly number[] = [0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2];

/** Bounds in seconds for the time until a backend is found suspect or dead (health.ping; D6, D14). */
export const detectionBounds: readonly number[] = [0.25, 0.5, 1, 1.5, 2, 3, 5, 10, 30];

/** Bounds in seconds for the time from the loss or suspicion of a watch's stream until the watch continues. */
export const moveBounds: readonly number[] = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30];

export class Histogram {
  readonly bounds: readonly number[];
  /** Number of values in each bucket. The last bucket counts values above all `bounds`. */
  readonly counts: number[];
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  observe(value: number): void {
    let at = 0;
    while (at < this.bounds.length && value > (this.bounds[at] ?? 0)) at += 1;
    this.counts[at] = (this.counts[at] ?? 0) + 1;
    this.sum += value;
  }

  plus(other: Histogram | undefined): Histogram {
    const both = new Histogram(this.bounds);
    for (const one of [this, other]) {
      for (const [at, count] of one?.counts.entries() ?? []) both.counts[at] = (both.counts[at] ?? 0) + count;
      both.sum += one?.sum ?? 0;
    }
    return both;
  }

  get count(): number {
    return this.counts.reduce((sum, one) => sum + one, 0);
  }
}
