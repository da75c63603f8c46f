/** Measures the work that requests cause, in bytes per second, as a moving average. */
export class WorkMeter {
  /** Work in bytes since `#since`, and the average work per second before that time. */
  #work = 0;
  #perSecond = 0;
  #since = 0;

  /** Adds work in bytes. Returns the work since the last `average`. */
  add(bytes: number): number {
    this.#work += bytes;
    return this.#work;
  }

  /** Returns the work per second, as a moving average with the time constant `ms`. `now`: a clock reading. */
  average(now: number, ms: number): number {
    const sinceMs = now - this.#since;
    if (sinceMs > 0) {
      const share = 1 - Math.exp(-sinceMs / ms);
      this.#perSecond += ((this.#work * 1000) / sinceMs - this.#perSecond) * share;
      this.#work = 0;
      this.#since = now;
    }
    return this.#perSecond;
  }
}
