/** Selects the first few of many rows without sorting all: a heap of the best so far, with the worst at the top. */

/** Same result as `rows.toSorted(compare).slice(0, count)`, except for the order of equal rows. */
export function firstOf<T>(rows: readonly T[], count: number, compare: (a: T, b: T) => number): T[] {
  if (rows.length <= 2 * count) return rows.toSorted(compare).slice(0, count);
  const heap: T[] = [];
  for (const row of rows) {
    const [worst] = heap;
    if (heap.length < count) rise(heap, row, compare);
    else if (worst !== undefined && compare(row, worst) < 0) sink(heap, row, compare);
  }
  return heap.toSorted(compare);
}

function rise<T>(heap: T[], row: T, compare: (a: T, b: T) => number): void {
  let at = heap.push(row) - 1;
  while (at > 0) {
    const above = (at - 1) >> 1;
    const parent = heap[above];
    if (parent === undefined || compare(row, parent) <= 0) break;
    heap[at] = parent;
    at = above;
  }
  heap[at] = row;
}

/** Replaces the top of the heap. */
function sink<T>(heap: T[], row: T, compare: (a: T, b: T) => number): void {
  let at = 0;
  for (;;) {
    const left = heap[2 * at + 1];
    const right = heap[2 * at + 2];
    if (left === undefined) break;
    const isRight = right !== undefined && compare(right, left) > 0;
    const worse = isRight ? right : left;
    if (compare(worse, row) <= 0) break;
    heap[at] = worse;
    at = 2 * at + (isRight ? 2 : 1);
  }
  heap[at] = row;
}
