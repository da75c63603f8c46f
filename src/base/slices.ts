/**
 * Walks over many entries in slices, so that no event loop turn is spent on all watches, requests or clients: a
 * client's request waits for one slice at most. The first slice runs immediately; with few entries it is the whole
 * walk.
 */
import type { Clock } from "./clock.ts";

export const sliceLimits = {
  /**
   * How long one walk over all watches, requests or clients may take in one event loop turn. Three concurrent walks
   * plus the rest of the turn stay below 10 ms. A visit takes 0.1 to 5 µs.
   */
  sliceMs: 2,
  sliceEntries: 1000,
} as const;

/** A `visit` that returns this ends its walk. */
export const stop = Symbol("stop");

/**
 * Visits each entry once, at most `sliceEntries` of them and for about `sliceMs` in one event loop turn.
 * Calls `done` after the last visit, or after a visit that returned `stop`.
 *
 * `entries` may change during the walk. Of an array pass a copy; a Map or a Set iterates correctly (ECMA-262
 * §24.2.6.2): removed entries are skipped, added ones are visited. An entry of a copy may have ended before its visit:
 * `visit` must check.
 *
 * A visit that throws affects only its own entry. The error goes to the caller from the first slice, and to the clock
 * from later slices. Returns a function that ends the walk: after it nothing is visited and `done` is not called.
 */
export function inSlices<T>(
  clock: Clock,
  entries: Iterable<T>,
  visit: (entry: T) => unknown,
  done: () => void = () => {},
): () => void {
  const walk = entries[Symbol.iterator]();
  let isOver = false;
  const slice = (): void => {
    if (isOver) return;
    // Stays false until the slice is complete, so that an exception does not end the walk.
    let isLast = false;
    try {
      isLast = visitSome(clock, walk, visit);
    } finally {
      if (!isLast) clock.soon(slice);
      isOver = isLast;
    }
    if (isLast) done();
  };
  slice();
  return () => {
    isOver = true;
  };
}

/** Returns true if no entry is left or the visit ended the walk. */
function visitSome<T>(clock: Clock, walk: Iterator<T>, visit: (entry: T) => unknown): boolean {
  const until = clock.now() + sliceLimits.sliceMs;
  for (let count = 0; count < sliceLimits.sliceEntries; count += 1) {
    const next = walk.next();
    if (next.done === true || visit(next.value) === stop) return true;
    if (clock.now() >= until) return false;
  }
  return false;
}
