/**
 * Finds what grows in a long run: the proxy's tables, the number of timers, and the memory. Compares the sizes after the
 * first hours with those of each later hour.
 */

/** The sizes of all tables by their names, and the live memory. */
export type Sizes = {
  readonly tables: Map<string, number>;
  /** Bytes in use after a garbage collection; undefined: they cannot be measured. */
  readonly liveBytes: number | undefined;
};

/**
 * The number of requests, watches and connections changes from hour to hour, because nodes leave and join, and watches
 * end at random times. So 5 % and a few entries more are no growth. A table that never forgets a watch, node or event
 * exceeds this within an hour; one that never forgets a fault, within a day.
 */
const tableShare = 1.05;
const tableEntries = 24;
/** V8 keeps a garbage collection's survivors for a while, and compiles more code in a long run. */
const liveShare = 1.05;
const liveSlackBytes = 16 * 1024 * 1024;

/**
 * Returns what has grown. A table that `before` lacks is not compared. `most`: the limits of tables that fill up slowly.
 * Such a table may grow up to its limit.
 */
export function grownSince(before: Sizes, now: Sizes, most: Readonly<Record<string, number>>): string[] {
  const grown: string[] = [];
  for (const [name, size] of now.tables) {
    const was = before.tables.get(name) ?? Number.POSITIVE_INFINITY;
    const mostEntries = Math.max(most[name] ?? 0, was * tableShare + tableEntries);
    if (size > mostEntries) grown.push(`${name} has ${size} entries instead of ${was}`);
  }
  const { liveBytes: live } = now;
  const liveMost = (before.liveBytes ?? Number.POSITIVE_INFINITY) * liveShare + liveSlackBytes;
  if (live !== undefined && live > liveMost)
    grown.push(`${inMB(live)} MB are in use instead of ${inMB(before.liveBytes ?? 0)} MB`);
  return grown;
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
