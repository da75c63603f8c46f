/**
 * Runs several test files in one process, one after the other, so that they share the loaded modules. `test/run.ts`
 * starts it and reads the lines `began` and `ended` to know which output belongs to which file. A line `ended` carries
 * the exit code that the file would have had in a process of its own.
 *
 * node test/support/together.ts file [file ...]
 */
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { began, ended } from "./outcome.ts";

// uvu reads these two at its import: it then starts no suite by itself, and takes the suites from this queue.
const shared = globalThis as { UVU_DEFER?: number; UVU_QUEUE?: unknown[][] };
shared.UVU_DEFER = 1;
shared.UVU_QUEUE = [];
const { exec } = await import("uvu");

for (const file of process.argv.slice(2)) {
  process.stdout.write(`\n${began} ${file}\n`);
  shared.UVU_QUEUE.splice(0, Number.POSITIVE_INFINITY, [null]);
  process.exitCode = 0;
  await import(pathToFileURL(resolve(file)).href);
  await exec();
  process.stdout.write(`\n${ended} ${file} ${process.exitCode}\n`);
}
// Servers and timers that a test left open must not keep the process of all files open.
process.exit(0);
