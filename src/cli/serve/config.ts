import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** `watchkeeper config`: a commented sample to start from. */
export function config(): Promise<number> {
  const sample = readFileSync(new URL("../../../config/static.yaml", import.meta.url), "utf8");
  process.stdout.write(printed(sample));
  return Promise.resolve(0);
}

/** Wherever it is saved: editors find the schema of this installation, and the commands name the usual file. */
function printed(sample: string): string {
  const schemas = fileURLToPath(new URL("../../../config/schema", import.meta.url));
  return sample
    .replace("$schema=./schema/", () => `$schema=${schemas}/`)
    .replaceAll("--config static.yaml     ", "--config watchkeeper.yaml")
    .replaceAll("--config static.yaml", "--config watchkeeper.yaml");
}
