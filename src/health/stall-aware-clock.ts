/**
 * Timeouts that count only time in which our own event loop ran, so that a stall of ours never counts against a peer
 * (F11).
 */
import type { Clock } from "../base/clock.ts";
import { limits } from "../base/limits.ts";

const sliceMs = 250;
/** A remainder this small is a rounding error: a timer for it may fire before the clock has moved, for ever. */
const nothingMs = 0.001;

/**
 * Runs once after `ms` in which the loop ran, in slices: a slice that ends late counts with its nominal length. Input
 * that arrived meanwhile is read before `run`. Returns a function that cancels it.
 */
export function stallAwareTimeout(clock: Clock, ms: number, run: () => void): () => void {
  let isOver = false;
  let leftMs = ms;
  let stop: (() => void) | undefined;
  const wait = (): void => {
    const startedAt = clock.now();
    const slice = Math.min(sliceMs, leftMs);
    stop = clock.after(slice, () => {
      const passedMs = clock.now() - startedAt;
      leftMs -= passedMs > slice + limits.stallMs ? slice : Math.min(leftMs, passedMs);
      if (leftMs > nothingMs) return wait();
      clock.soon(() => {
        if (!isOver) run();
      });
    });
  };
  wait();
  return () => {
    isOver = true;
    stop?.();
  };
}

/**
 * A clock that stops while our own event loop is stalled. Times measured by it, and timers of its `after`, count only
 * time in which the loop ran, so that a stall of ours ends none of them (F11). `wall` and `soon` are the real clock's.
 */
export class StallAwareClock implements Clock {
  readonly #clock: Clock;
  #stalledMs = 0;
  #dueAt = Number.POSITIVE_INFINITY;
  #stop: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Starts to measure stalls. Before it, and after `stop`, stalls are not detected. */
  start(): void {
    if (this.#stop === undefined) this.#tick();
  }

  stop(): void {
    this.#stop?.();
    this.#stop = undefined;
    this.#dueAt = Number.POSITIVE_INFINITY;
  }

  #tick(): void {
    this.#dueAt = this.#clock.now() + sliceMs;
    this.#stop = this.#clock.after(sliceMs, () => {
      this.#stalledMs += this.#lateMs(this.#clock.now());
      this.#tick();
    });
  }

  /** Returns by how much the next tick is overdue, beyond the usual lateness of timers. */
  #lateMs(now: number): number {
    return Math.max(0, now - this.#dueAt - limits.stallMs);
  }

  /** Milliseconds in which the loop ran, since an arbitrary start; never goes back. */
  now(): number {
    const now = this.#clock.now();
    return now - this.#stalledMs - this.#lateMs(now);
  }

  wall(): number {
    return this.#clock.wall();
  }

  after(ms: number, run: () => void): () => void {
    return stallAwareTimeout(this.#clock, ms, run);
  }

  soon(run: () => void): void {
    this.#clock.soon(run);
  }
}
