/** Writes new files, readable by their owner only: either all of them or none. Never overwrites a file. */
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { Failure, failureFrom } from "../../../base/failure.ts";
import { quote } from "../../config/problem.ts";

export type NewFile = { readonly path: string; readonly text: string };

/**
 * Makes a directory and its missing parents, accessible to their owner only. Does not use Node's own option
 * `recursive`, which never returns if the kernel reports ENOENT although the parent exists, as in /proc.
 * @throws {Error} the system's error
 */
export function makeDirectory(path: string): void {
  if (existsSync(path)) return;
  makeDirectory(dirname(path));
  mkdirSync(path, 0o700);
}

/**
 * Writes the files and makes missing directories. If one file cannot be written, removes those already written and
 * returns a Failure.
 */
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
      // "wx" fails if another process has created the path since the check above, for example as a link.
      writeFileSync(path, text, { flag: "wx", mode: 0o600 });
      written.push(path);
    }
    return undefined;
  } catch (reason) {
    for (const path of written) rmSync(path, { force: true });
    return new Failure("bad-file", "proxy", `Nothing was written: ${failureFrom(reason, "proxy").message}`);
  }
}
