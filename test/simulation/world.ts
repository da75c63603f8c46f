/**
 * Virtual time. All that happens in a run is a callback with a time, and callbacks run in the order of their times. The
 * seed decides whether callbacks that are due at almost the same time share an event-loop turn. The callbacks of `soon`
 * run after each turn.
 */
import type { Clock } from "../../src/base/clock.ts";
import type { Random } from "./random.ts";

/**
 * More callbacks than this within one millisecond mean that time stands still. Megabytes that are sent byte by byte
 * with microseconds of delay need 50,000 or more.
 */
const busiest = 1_000_000;

type Due = { readonly at: number; readonly order: number; run: (() => void) | undefined };

/** Milliseconds: sockets that become readable within this time are often read in the same turn of Node's event loop. */
const turnMs = 0.2;

export class World implements Clock {
  readonly #random: Random;
  /** Random numbers from 0 to below 1 for the proxy's own choices. */
  readonly fraction = (): number => this.#random.next();
  /** A binary heap, ordered by time and then by insertion. */
  readonly #heap: Due[] = [];
  #soon: (() => void)[] = [];
  #now = 0;
  #orders = 0;
  #decisions = 0;
  /** Number of callbacks that have run within the present millisecond. */
  #busy = 0;
  /** Called after each turn of the event loop. */
  onTurn: () => void = () => {};

  constructor(random: Random) {
    this.#random = random;
  }

  /** Number of callbacks that have run. */
  get decisions(): number {
    return this.#decisions;
  }

  /** True if no callback is pending. */
  get isStill(): boolean {
    return this.#soon.length === 0 && this.#heap.every(({ run }) => run === undefined);
  }

  /** Number of callbacks that have not run yet. */
  get pending(): number {
    return this.#soon.length + this.#heap.filter(({ run }) => run !== undefined).length;
  }

  now(): number {
    return this.#now;
  }

  wall(): number {
    return 1_800_000_000_000 + this.#now;
  }

  after(ms: number, run: () => void): () => void {
    return this.at(this.#now + Math.max(0, ms), run);
  }

  /**
   * Schedules a callback at an absolute time, behind those already scheduled for it. Adding a delay to the present time
   * could round the result.
   */
  at(time: number, run: () => void): () => void {
    this.#orders += 1;
    const due: Due = { at: time, order: this.#orders, run };
    push(this.#heap, due);
    return () => {
      due.run = undefined;
    };
  }

  soon(run: () => void): void {
    this.#soon.push(run);
  }

  /** Runs callbacks until `isDone` returns true or `mostMs` have passed. Returns true in the first case. */
  runUntil(isDone: () => boolean, mostMs: number): boolean {
    const until = this.#now + mostMs;
    this.#flush();
    while (!isDone()) {
      const first = this.#heap[0];
      if (first === undefined || first.at > until) return false;
      this.#turn();
    }
    return true;
  }

  #turn(): void {
    const [first] = this.#heap;
    if (first === undefined) return;
    const end = first.at + turnMs;
    do this.#takeOne();
    while ((this.#heap[0]?.at ?? Number.POSITIVE_INFINITY) <= end && this.#random.chance(0.5));
    this.#flush();
    this.onTurn();
  }

  #takeOne(): void {
    const due = pop(this.#heap);
    if (due?.run === undefined) return;
    if (Math.floor(due.at) > this.#now) this.#busy = 0;
    this.#now = Math.max(this.#now, due.at);
    this.#decisions += 1;
    this.#busy += 1;
    if (this.#busy > busiest) throw new Error(`Virtual time stands still at ${this.#now} ms`);
    due.run();
  }

  /** Callbacks that are added during the flush run in the next turn, as with setImmediate. */
  #flush(): void {
    const batch = this.#soon;
    this.#soon = [];
    for (const run of batch) run();
    if (this.#soon.length > 0) this.after(0, () => {});
  }
}

function isBefore(a: Due, b: Due): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

function push(heap: Due[], due: Due): void {
  let at = heap.length;
  heap.push(due);
  while (at > 0) {
    const above = (at - 1) >> 1;
    const parent = heap[above];
    if (parent === undefined || !isBefore(due, parent)) break;
    heap[at] = parent;
    at = above;
  }
  heap[at] = due;
}

function pop(heap: Due[]): Due | undefined {
  const [first] = heap;
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return first;
  let at = 0;
  for (;;) {
    let below = 2 * at + 1;
    const [left, right] = [heap[below], heap[below + 1]];
    if (left === undefined) break;
    if (right !== undefined && isBefore(right, left)) below += 1;
    const child = heap[below];
    if (child === undefined || !isBefore(child, last)) break;
    heap[at] = child;
    at = below;
  }
  heap[at] = last;
  return first;
}
