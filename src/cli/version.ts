import { readFileSync } from "node:fs";

/** `watchkeeper version`: ours and Node's, on one line. */
export function version(): Promise<number> {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const ours = /"version": "([^"]+)"/.exec(text)?.[1] ?? "unknown";
  process.stdout.write(`watchkeeper ${ours} (node ${process.versions.node})\n`);
  return Promise.resolve(0);
}
