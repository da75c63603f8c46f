/** Bounds in seconds of kube-apiserver's buckets for request durations, so that operators can compare histograms. */
export const requestBounds: readonly number[] = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
];

/** Bounds in seconds for round-trip times: from 1 ms within one machine to 2 s after lost packets. */
export const rttBounds: readonly number[] = [0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2];

/** Bounds in seconds for the time until a backend is found suspect or dead (health.ping; D6, D14). */
export const detectionBounds: readonly number[] = [0.25, 0.5, 1, 1.5, 2, 3, 5, 10, 30];

/**
 * Bounds in seconds for two times: the time that the proxy itself adds to a request, and the time for which a request
 * waits in the proxy.
 */
export const overheadBounds: readonly number[] = [
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30,
];

/**
 * Bounds in seconds for the time from the moment at which a watch's stream was lost or became suspect until the watch
 * continued.
 */
export const moveBounds: readonly number[] = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30];

/**
 * Bounds in seconds for the delay with which a watch delivers a write. A stalled cache can delay it by 30 s and more.
 */
export const watchDelayBounds: readonly number[] = [
  0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30,
];

/**
 * For each bucket, the latest value that was observed with an audit ID. The fields are arrays, so that no value needs
 * an object.
 */
type Exemplars = { readonly auditIds: string[]; readonly values: number[]; readonly times: number[] };

export type Exemplar = { readonly auditId: string; readonly value: number; readonly at: number };

/**
 * A histogram that another process can read. An exemplar is [bucket, audit ID, value, age in ms]. It has an age
 * instead of a clock reading, because the clocks of two processes differ.
 */
export type PlainHistogram = {
  readonly counts: readonly number[];
  readonly sum: number;
  readonly exemplars: readonly (readonly [bucket: number, auditId: string, value: number, ageMs: number])[];
};

const none: Exemplars = { auditIds: [], values: [], times: [] };

export class Histogram {
  readonly bounds: readonly number[];
  /** Number of values in each bucket. The last bucket counts values above all `bounds`. */
  readonly counts: number[];
  sum = 0;
  #exemplars: Exemplars | undefined;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  /** Counts a value. If `auditId` is not "", the value becomes its bucket's exemplar. `now`: clock reading. */
  observe(value: number, auditId = "", now = 0): void {
    let at = 0;
    while (at < this.bounds.length && value > (this.bounds[at] ?? 0)) at += 1;
    this.counts[at] = (this.counts[at] ?? 0) + 1;
    this.sum += value;
    if (auditId !== "") this.#keep(at, auditId, value, now);
  }

  #keep(bucket: number, auditId: string, value: number, at: number): void {
    let exemplars = this.#exemplars;
    if (exemplars === undefined) {
      const zeros = (): number[] => this.counts.map(() => 0);
      exemplars = { auditIds: this.counts.map(() => ""), values: zeros(), times: zeros() };
      this.#exemplars = exemplars;
    }
    exemplars.auditIds[bucket] = auditId;
    exemplars.values[bucket] = value;
    exemplars.times[bucket] = at;
  }

  /** Returns the exemplar of the bucket; undefined if it has none. */
  exemplarOf(bucket: number): Exemplar | undefined {
    const { auditIds, values, times } = this.#exemplars ?? none;
    const auditId = auditIds[bucket] ?? "";
    return auditId === "" ? undefined : { auditId, value: values[bucket] ?? 0, at: times[bucket] ?? 0 };
  }

  /** Returns the histogram in a form that another process can read. `now`: clock reading in ms. */
  toPlain(now: number): PlainHistogram {
    const exemplars = this.counts.flatMap((_count, bucket) => {
      const exemplar = this.exemplarOf(bucket);
      if (exemplar === undefined) return [];
      return [[bucket, exemplar.auditId, exemplar.value, now - exemplar.at] as const];
    });
    return { counts: this.counts, sum: this.sum, exemplars };
  }

  /** Returns the histogram that another process has sent as `plain`. Both processes must use the same `bounds`. */
  static fromPlain(bounds: readonly number[], plain: PlainHistogram, now: number): Histogram {
    const histogram = new Histogram(bounds);
    for (const at of histogram.counts.keys()) histogram.counts[at] = plain.counts[at] ?? 0;
    histogram.sum = plain.sum;
    for (const [bucket, auditId, value, ageMs] of plain.exemplars)
      if (bucket < histogram.counts.length) histogram.#keep(bucket, auditId, value, now - ageMs);
    return histogram;
  }

  plus(other: Histogram | undefined): Histogram {
    const both = new Histogram(this.bounds);
    both.#add(this);
    if (other !== undefined) both.#add(other);
    return both;
  }

  #add(one: Histogram): void {
    for (const [at, count] of one.counts.entries()) {
      this.counts[at] = (this.counts[at] ?? 0) + count;
      const exemplar = one.exemplarOf(at);
      if (exemplar !== undefined && exemplar.at >= (this.exemplarOf(at)?.at ?? 0))
        this.#keep(at, exemplar.auditId, exemplar.value, exemplar.at);
    }
    this.sum += one.sum;
  }

  get count(): number {
    return this.counts.reduce((sum, one) => sum + one, 0);
  }
}

/** Each bucket of `LatencyCounts` ends 25 % above the previous bucket, so a quantile is at most 25 % too high. */
const firstEdgeMs = 0.1;
const growth = 1.25;
const logGrowth = Math.log(growth);

export const buckets = 62;

export function bucketOf(ms: number): number {
  if (ms <= firstEdgeMs) return 0;
  return Math.min(buckets - 1, Math.ceil(Math.log(ms / firstEdgeMs) / logGrowth));
}

/** Returns the longest duration in ms that the bucket counts. */
export function edgeOf(bucket: number): number {
  return firstEdgeMs * growth ** bucket;
}

/**
 * Counts of durations. A reader that keeps a copy of the counts can compute the quantiles of the durations that were
 * added after the copy.
 */
export class LatencyCounts {
  readonly #counts = new Uint32Array(buckets);

  add(ms: number): void {
    const bucket = bucketOf(ms);
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
  }

  copy(): Uint32Array {
    return this.#counts.slice();
  }
}

/** Returns the counts since `before`. `>>> 0` makes the difference correct even if a count has overflowed. */
export function countsSince(before: ArrayLike<number> | undefined, counts: ArrayLike<number>): Uint32Array {
  return Uint32Array.from(
    { length: buckets },
    (_none, at) => ((counts[at] ?? 0) - (before?.[at] ?? 0)) >>> 0,
  );
}

/** Returns the quantile in ms, for example the 99th percentile for `share` 0.99; NaN if nothing was counted. */
export function quantileOf(counts: Uint32Array, share: number): number {
  const total = counts.reduce((sum, count) => sum + count, 0);
  let left = total * share;
  for (const [bucket, count] of counts.entries()) {
    left -= count;
    if (count > 0 && left <= 0) return edgeOf(bucket);
  }
  return Number.NaN;
}
