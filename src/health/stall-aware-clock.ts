import type { Clock } from "../base/clock.ts";
import { limits } from "../base/limits.ts";

const sliceMs = 250;
/** A remainder up to this many ms counts as zero. Otherwise a rounding error could start a timer again and again. */
const nothingMs = 0.001;

/**
 * Calls `run` after `ms` milliseconds in which the proxy's event loop was not stalled, so that a stall never counts
 * against a peer (F11). The time is divided into slices; if the timer of a slice fires late, only the slice's length
 * counts. Input that arrived during a stall is processed before `run`. Returns a function that cancels the call.
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

/** A clock that stops while the proxy's event loop is stalled (F11). `wall` and `soon` are those of the real clock. */
export class StallAwareClock implements Clock {
  readonly #clock: Clock;
  #stalledMs = 0;
  #dueAt = Number.POSITIVE_INFINITY;
  #stop: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

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

  #lateMs(now: number): number {
    return Math.max(0, now - this.#dueAt - limits.stallMs);
  }

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
