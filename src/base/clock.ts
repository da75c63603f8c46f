/**
 * The only source of time. Everything that waits or measures takes a Clock, so that a test can advance hours in one
 * line and the simulation runs days in seconds. No other file may use Date or timers.
 */
export type Clock = {
  /** Milliseconds since an arbitrary start; never goes back. */
  now(): number;
  /** Milliseconds since 1970, for certificates and log lines only: it may jump. */
  wall(): number;
  /** Runs `run` once after `ms`, which may be any number; the returned function cancels it. */
  after(ms: number, run: () => void): () => void;
  /** Runs `run` once when this event loop turn's input has been read: a turn's output is flushed there. */
  soon(run: () => void): void;
};

/** Node runs a longer timer after 1 ms (nodejs.org/api/timers.html). */
const longestTimerMs = 2 ** 31 - 1;

/** Chains several timers for a time that is too long for one. */
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

export const wallClock: Clock = {
  now: () => performance.now(),
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

/** RFC 3339 in UTC without fractions, as Kubernetes writes a time. */
export function timestampOf(wallMs: number): string {
  return new Date(wallMs).toISOString().replace(/\.\d+Z$/, "Z");
}

/** The wall time that a timestamp names; NaN when it names none. */
export function wallOf(timestamp: string): number {
  return Date.parse(timestamp);
}

/** Returns a reading of `wall()` as a Date, for packages and certificates that need one. */
export function dateOf(wallMs: number): Date {
  return new Date(wallMs);
}
