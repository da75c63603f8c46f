/** Keeps the latest steps of several series of numbers, in memory of a fixed size. */

export class SeriesRing {
  readonly #steps: number;
  readonly #columns: readonly Float32Array[];
  /** Number of the newest step. */
  #newest = -1;

  constructor(steps: number, series: number) {
    this.#steps = steps;
    this.#columns = Array.from({ length: series }, () => new Float32Array(steps).fill(Number.NaN));
  }

  get newest(): number {
    return this.#newest;
  }

  get bytes(): number {
    return this.#columns.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  /** Sets the values of a step. Steps between the newest one and this one become gaps. */
  set(step: number, values: readonly number[]): void {
    for (let gap = Math.max(this.#newest + 1, step - this.#steps + 1); gap < step; gap += 1)
      for (const column of this.#columns) column[gap % this.#steps] = Number.NaN;
    for (const [at, column] of this.#columns.entries()) column[step % this.#steps] = values[at] ?? Number.NaN;
    this.#newest = step;
  }

  /** Returns the values of a series from step `first` up to the step before `next`; null for a step without a value. */
  values(series: number, first: number, next: number): (number | null)[] {
    const column = this.#columns[series];
    const oldest = this.#newest - this.#steps;
    return Array.from({ length: next - first }, (_, at) => {
      const step = first + at;
      const isKept = step >= 0 && step > oldest && step <= this.#newest;
      const value = isKept ? (column?.[step % this.#steps] ?? Number.NaN) : Number.NaN;
      return Number.isNaN(value) ? null : Math.round(value * 100) / 100;
    });
  }
}
