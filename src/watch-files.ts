/** Notices that files have changed, by looking: inotify would miss the swap of a `..data` link above them. */
import { stat } from "node:fs";
import type { Clock } from "./clock.ts";

/** What a file is at one moment; a missing one has a mark as well. */
function markOf(path: string): Promise<string> {
  return new Promise((resolve) => {
    stat(path, { bigint: true }, (error, found) => {
      // A renamed-over file, a swapped link and a write each change at least one of these.
      resolve(
        error ? String(error.code) : [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(),
      );
    });
  });
}

/**
 * Calls `onChange` when any of `paths` has changed and then stayed as it is for one more look: an editor's or a
 * copy's half-written file is not read. Returns its stop function.
 */
export function watchFiles(
  paths: readonly string[],
  options: { readonly clock: Clock; readonly intervalMs: number; readonly onChange: () => void },
): () => void {
  const { clock, intervalMs, onChange } = options;
  let known: string | undefined;
  let seen: string | undefined;
  let isStopped = false;
  let cancel: (() => void) | undefined;
  const look = async (): Promise<void> => {
    const marks = (await Promise.all(paths.map((path) => markOf(path)))).join("|");
    if (isStopped) return;
    known ??= marks;
    const isSettled = marks === seen;
    seen = marks;
    cancel = clock.after(isSettled ? intervalMs : Math.min(intervalMs, settleMs), () => void look());
    if (marks === known || !isSettled) return;
    known = marks;
    onChange();
  };
  void look();
  return () => {
    isStopped = true;
    cancel?.();
  };
}

/** A file that changes is looked at again this soon. */
const settleMs = 100;
