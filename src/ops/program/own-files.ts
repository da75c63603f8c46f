/**
 * Paths of the program's own files. The code root is the repository, or the folder dist of the npm package, which has
 * the same tree. This module is three folders below it. The build (deploy/release/bundle.ts) puts each bundle that
 * contains this module at the same depth.
 */
import { dirname, extname, join } from "node:path";

const root = join(import.meta.dirname, "../../..");
const extension = extname(import.meta.filename);

/** Returns the path of one of the program's own files. `path` is relative to the code root. */
export function ownFile(path: string): string {
  return join(root, path);
}

/** Returns the path of a file that the package has beside its code. `path` is relative to package.json's folder. */
export function packageFile(path: string): string {
  return join(extension === ".ts" ? root : dirname(root), path);
}

/** Returns the main file of a child process or a thread. `path` has no extension: it is .ts in src and .js in dist. */
export function ownModule(path: string): string {
  return `${ownFile(path)}${extension}`;
}
