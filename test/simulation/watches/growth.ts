/**
 * Detects what grows during a long run: the proxy's tables, the timers and the memory. The state after the first hours
 * is compared with each later one.
 */

/** The sizes of all tables by their paths, and the live memory. */
export type Sizes = {
  readonly tables: ReadonlyMap<string, number>;
  /** Bytes in use after a garbage collection; undefined: they cannot be measured. */
  readonly liveBytes: number | undefined;
};

/**
 * The number of requests, watches and connections changes from hour to hour: nodes leave and join, and watches end at
 * random times. 5 % and a few entries more are no growth. A table that keeps one entry for each watch, each node or
 * each event exceeds this within an hour, one that keeps an entry for each fault within a day.
 */
const tableShare = 1.05;
const tableEntries = 24;
/** V8 keeps a garbage collection's survivors for a while, and compiles more code in a long run. */
const liveShare = 1.05;
const liveSlackBytes = 16 * 1024 * 1024;

/**
 * Returns what has grown. `most`: the limits of tables that fill up slowly, by the end of their path. Such a table may
 * grow up to its limit.
 */
export function grownSince(before: Sizes, now: Sizes, most: Readonly<Record<string, number>>): string[] {
  const grown: string[] = [];
  for (const [path, size] of now.tables) {
    const was = before.tables.get(path) ?? 0;
    if (size > allowed(path, was, most)) grown.push(`${path} has ${size} entries instead of ${was}`);
  }
  const { liveBytes: live } = now;
  const liveMost = (before.liveBytes ?? Number.POSITIVE_INFINITY) * liveShare + liveSlackBytes;
  if (live !== undefined && live > liveMost)
    grown.push(`${inMB(live)} MB are in use instead of ${inMB(before.liveBytes ?? 0)} MB`);
  return grown;
}

function allowed(path: string, was: number, most: Readonly<Record<string, number>>): number {
  const limit = Object.entries(most).find(([end]) => path.endsWith(end))?.[1] ?? 0;
  return Math.max(limit, was * tableShare + tableEntries);
}

/** Returns the bytes in use after a garbage collection; undefined without `--expose-gc`. */
export function liveBytes(): number | undefined {
  const { gc } = globalThis;
  if (gc === undefined) return undefined;
  gc();
  gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function inMB(bytes: number): number {
  return Math.round(bytes / 1e6);
}
