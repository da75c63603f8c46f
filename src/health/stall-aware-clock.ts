/** Waits for which only time counts in which our own loop ran: what we stood still is charged to nobody (F11). */
import type { Clock } from "../base/clock.ts";
import { limits } from "../base/limits.ts";

const sliceMs = 250;
/** What is left by a rounding is nothing: a timer of so little may be due before the clock has moved, for ever. */
const nothingMs = 0.001;

/**
 * Runs once after `ms` in which the loop ran, in slices: one that ends late counts as its length. Before it runs, what
 * arrived meanwhile is read. Returns its undoing.
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
 * A clock that stands still while our own loop does: waits that are measured by it, or made with its `after`, count only
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

  /** Begins to measure stalls; until then, and after `stop`, none is seen. */
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

  /** By how much the next tick is later than any timer may be. */
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
