/** Detects changed files by polling: inotify would miss the swap of a `..data` link above them. */
import { statSync } from "node:fs";
import type { Clock } from "./clock.ts";

/** Returns a fingerprint of the file's current state; a missing file has one as well. */
function markOf(path: string): string {
  try {
    const found = statSync(path, { bigint: true });
    // A rename over the file, a swapped link and a write each change at least one of these.
    return [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join();
  } catch (reason) {
    return String(reason);
  }
}

/**
 * Calls `onChange` when any of `paths` has changed and then stayed the same for one more poll, so that a half-written
 * file is not read. Returns its stop function.
 */
export function watchFiles(
  paths: readonly string[],
  options: { readonly clock: Clock; readonly intervalMs: number; readonly onChange: () => void },
): () => void {
  const { clock, intervalMs, onChange } = options;
  const marks = (): string => paths.map((path) => markOf(path)).join("|");
  let known = marks();
  let seen = known;
  let cancel = clock.after(intervalMs, look);
  function look(): void {
    const now = marks();
    const isSettled = now === seen;
    seen = now;
    cancel = clock.after(isSettled ? intervalMs : Math.min(intervalMs, settleMs), look);
    if (now === known || !isSettled) return;
    known = now;
    onChange();
  }
  return () => cancel();
}

/** A changed file is polled again after this time. */
const settleMs = 100;
