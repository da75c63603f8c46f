/** Waits for which only time counts in which our own loop ran: what we stood still is charged to nobody (F11). */
import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";

const sliceMs = 250;
/** What is left by a rounding is nothing: a timer of so little may be due before the clock has moved, for ever. */
const nothingMs = 0.001;

/**
 * Runs once after `ms` in which the loop ran, in slices: one that ends late counts as its length. Before it runs, what
 * arrived meanwhile is read. Returns its undoing.
 */
export function patiently(clock: Clock, ms: number, run: () => void): () => void {
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
