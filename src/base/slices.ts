/**
 * Visits many entries in slices, so that a request that arrives meanwhile waits for one slice at most, and not for a
 * walk over all watches, requests or clients. The first slice runs at once and suffices for few entries.
 */
import type { Clock } from "./clock.ts";

export const sliceLimits = {
  /** Milliseconds of an event loop turn that one walk may take. A turn with three walks stays below 10 ms. */
  sliceMs: 2,
  /** Maximum number of entries that one slice visits. */
  sliceEntries: 1000,
} as const;

export const stop = Symbol("stop");

/**
 * Visits each entry once. Calls `done` after the last visit, or after a visit that returned `stop`. Returns a function
 * that ends the walk without calling `done`. A Map or a Set may change during the walk (ECMA-262 §24.2.6.2). If the
 * entries are in an array that may change, pass a copy of it, and let `visit` check whether the entry still exists. If
 * `visit` throws, the walk continues; an exception in the first slice reaches the caller, and one in a later slice
 * reaches the clock.
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
    // Stays false if `visit` throws, so that `finally` schedules the next slice.
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

/** Visits the entries of one slice. Returns true if no entry is left, or if a visit ended the walk. */
function visitSome<T>(clock: Clock, walk: Iterator<T>, visit: (entry: T) => unknown): boolean {
  const until = clock.now() + sliceLimits.sliceMs;
  for (let count = 0; count < sliceLimits.sliceEntries; count += 1) {
    const next = walk.next();
    if (next.done === true || visit(next.value) === stop) return true;
    if (clock.now() >= until) return false;
  }
  return false;
}
