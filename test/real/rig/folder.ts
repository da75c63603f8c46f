/**
 * Each run has a folder for its keys, logs and data in the system's temporary folder. The folder's name contains the
 * run's pid.
 */
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onLeave } from "./leave.ts";

const prefix = "watchkeeper-real-";

/**
 * Creates a folder that is removed at exit, and returns it with a function that removes it earlier. First removes the
 * folders of runs that were killed. With WATCHKEEPER_REAL_KEEP, the folder is kept until the next run.
 */
export function runFolder(): { readonly folder: string; readonly remove: () => void } {
  for (const name of readdirSync(tmpdir())) {
    const pid = name.startsWith(prefix) ? name.slice(prefix.length).split("-")[0] : undefined;
    if (pid === undefined || existsSync(`/proc/${pid}`)) continue;
    rmSync(join(tmpdir(), name), { recursive: true, force: true });
  }
  const folder = mkdtempSync(join(tmpdir(), `${prefix}${process.pid}-`));
  if (process.env["WATCHKEEPER_REAL_KEEP"] !== undefined) return { folder, remove: () => undefined };
  return { folder, remove: onLeave(() => rmSync(folder, { recursive: true, force: true })) };
}
