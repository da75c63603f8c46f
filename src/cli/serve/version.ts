import { ownVersion } from "../../version.ts";

/** `watchkeeper version`: prints the versions of watchkeeper and Node on one line. */
export function version(): Promise<number> {
  process.stdout.write(`watchkeeper ${ownVersion()} (node ${process.versions.node})\n`);
  return Promise.resolve(0);
}
