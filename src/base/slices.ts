/**
 * Walks many entries a slice at a time, so that no loop turn is spent on all watches, requests or clients: a client's
 * request waits for one slice at most. The first slice is walked at once: of few entries that is the whole walk.
 */
import type { Clock } from "./clock.ts";
import { limits } from "./limits.ts";

/** Ends a walk from within its `visit`. */
export const stop = Symbol("stop");

/**
 * Visits each entry once, at most `limits.sliceEntries` of them and for about `limits.sliceMs` in one loop turn. `done` is
 * called after the last one, or after a visit that returned `stop`.
 *
 * `entries` may change meanwhile. Of an array pass a copy; a Map or a Set walks itself right (ECMA-262 §24.2.6.2): what is
 * removed is not visited, what is added is. An entry of a copy may be over when its turn comes: `visit` has to look.
 *
 * A visit that throws costs its own entry only. What it threw goes to the caller from the first slice, and to the clock
 * from the others. Returns the end of the walk: nothing is visited after it, and `done` is not called.
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
    // Until the slice is through: a fault is not the end of the walk.
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

/** Returns true when none is left, or no other is wanted. */
function visitSome<T>(clock: Clock, walk: Iterator<T>, visit: (entry: T) => unknown): boolean {
  const until = clock.now() + limits.sliceMs;
  for (let count = 0; count < limits.sliceEntries; count += 1) {
    const next = walk.next();
    if (next.done === true || visit(next.value) === stop) return true;
    if (clock.now() >= until) return false;
  }
  return false;
}
