/** Where one run keeps its keys, logs and data: under the system's temporary folder, named by our pid. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onLeave } from "./leave.ts";

const prefix = "watchkeeper-real-";

/**
 * A new folder that goes with the run, and what removes it sooner. Those of killed runs go first. With
 * WATCHKEEPER_REAL_KEEP it stays until the next run, logs and all.
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
