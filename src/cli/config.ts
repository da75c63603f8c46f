import { readFileSync } from "node:fs";

/** `watchkeeper config`: a commented sample to start from. */
export function config(): Promise<number> {
  const sample = readFileSync(new URL("../../config/static.yaml", import.meta.url), "utf8");
  process.stdout.write(sample);
  return Promise.resolve(0);
}
