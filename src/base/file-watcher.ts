import { statSync } from "node:fs";
import type { Clock } from "./clock.ts";

function changeMarkOf(path: string): string {
  try {
    const found = statSync(path, { bigint: true });
    // At least one of these changes if the file is replaced by a rename, a link is swapped, or the file is written.
    return [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join();
  } catch (reason) {
    return String(reason);
  }
}

/**
 * Calls `onChange` when one of `paths` has changed and then stayed the same for one poll, so that no half-written file
 * is read. Polls, because inotify misses a changed `..data` link in the path of a mounted ConfigMap or Secret. Returns
 * a function that ends the polling.
 */
export function watchFiles(
  paths: readonly string[],
  options: { readonly clock: Clock; readonly intervalMs: number; readonly onChange: () => void },
): () => void {
  const { clock, intervalMs, onChange } = options;
  const marks = (): string => paths.map((path) => changeMarkOf(path)).join("|");
  let known = marks();
  let seen = known;
  let cancel = clock.after(intervalMs, look);
  function look(): void {
    const now = marks();
    const isSettled = now === seen;
    seen = now;
    cancel = clock.after(isSettled ? intervalMs : Math.min(intervalMs, changedPollMs), look);
    if (now === known || !isSettled) return;
    known = now;
    onChange();
  }
  return () => cancel();
}

const changedPollMs = 100;
