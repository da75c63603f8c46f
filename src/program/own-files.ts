/**
 * Paths of the program's own files, which are in src in the repository and in dist in the npm package. This module is
 * one folder below src. The build (deploy/release/bundle.ts) puts each bundle that contains this module one folder
 * below dist, so that `root` is right in both cases.
 */
import { dirname, extname, join } from "node:path";

const root = dirname(import.meta.dirname);

/** Returns the path of one of the program's own files. `path` is relative to src or dist. */
export function ownFile(path: string): string {
  return join(root, path);
}

/** Returns the main file of a child process or a thread. `path` has no extension: it is .ts in src and .js in dist. */
export function ownModule(path: string): string {
  return `${ownFile(path)}${extname(import.meta.filename)}`;
}
