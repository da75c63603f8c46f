/** The only source of time. No other file may use Date or timers, so that tests can run in virtual time. */
export type Clock = {
  /** Milliseconds since an arbitrary start; never goes back. */
  now(): number;
  /** Milliseconds since 1970. Only for certificates and log lines, because this clock may jump. */
  wall(): number;
  /** Calls `run` once after `ms`, which may exceed a Node timer's maximum. Returns a function that cancels the call. */
  after(ms: number, run: () => void): () => void;
  /**
   * Calls `run` once, after the event loop has processed this turn's input. At that point HTTP/2 sessions send their
   * output.
   */
  soon(run: () => void): void;
};

/** Maximum delay of a Node timer: Node fires a timer with a longer delay after 1 ms (nodejs.org/api/timers.html). */
const longestTimerMs = 2 ** 31 - 1;

function afterLong(ms: number, run: () => void): () => void {
  const wait = (leftMs: number): NodeJS.Timeout => {
    const nextMs = Math.min(leftMs, longestTimerMs);
    return setTimeout(() => {
      if (leftMs > nextMs) timer = wait(leftMs - nextMs);
      else run();
    }, nextMs);
  };
  let timer = wait(ms);
  return () => clearTimeout(timer);
}

/** Stored in a variable, because each read of the global `performance` calls a getter. */
const { performance: time } = globalThis;

export const wallClock: Clock = {
  now: () => time.now(),
  wall: () => Date.now(),
  after(ms, run) {
    if (ms > longestTimerMs) return afterLong(ms, run);
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
  soon(run) {
    setImmediate(run);
  },
};

/** Returns an RFC 3339 timestamp in UTC, without fractions of a second, as Kubernetes writes it. */
export function timestampOf(wallMs: number): string {
  return new Date(wallMs).toISOString().replace(/\.\d+Z$/, "Z");
}

/**
 * Returns the milliseconds since 1970 of a timestamp, in RFC 3339 or in the format of Node's certificates; NaN if
 * `Date` cannot parse the text.
 */
export function wallOf(timestamp: string): number {
  return Date.parse(timestamp);
}

export function dateOf(wallMs: number): Date {
  return new Date(wallMs);
}
