/** Files that did not exist before, all of them or none; only their owner may read them. */
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { Failure, failureFrom } from "../../base/failure.ts";
import { quote } from "../../config/problem.ts";

export type NewFile = { readonly path: string; readonly text: string };

/**
 * Makes the directory and what is missing above it, for its owner alone. Throws what stands in the way. Node's own
 * `recursive` never returns where the kernel says ENOENT although the parent is there, as in /proc.
 */
export function makeDirectory(path: string): void {
  if (existsSync(path)) return;
  makeDirectory(dirname(path));
  mkdirSync(path, 0o700);
}

/** Directories are made as needed. A Failure names what stands in the way; then nothing was written. */
export function writeNewFiles(files: readonly NewFile[]): Failure | undefined {
  const taken = files.filter(({ path }) => existsSync(path)).map(({ path }) => quote(path));
  if (taken.length > 0)
    return new Failure(
      "bad-file",
      "proxy",
      `Nothing was written, since nothing is overwritten: ${taken.join(", ")} ${taken.length > 1 ? "exist" : "exists"}`,
    );
  const written: string[] = [];
  try {
    for (const { path, text } of files) {
      makeDirectory(dirname(path));
      // "wx": somebody may have put something there since we looked, a link to elsewhere for instance.
      writeFileSync(path, text, { flag: "wx", mode: 0o600 });
      written.push(path);
    }
    return undefined;
  } catch (reason) {
    for (const path of written) rmSync(path, { force: true });
    return new Failure("bad-file", "proxy", `Nothing was written: ${failureFrom(reason, "proxy").message}`);
  }
}
