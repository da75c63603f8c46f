import { readFileSync } from "node:fs";
import { Failure } from "../../../base/failure.ts";
import { packageFile } from "../../program/own-files.ts";
import { given } from "../commands/options.ts";
import { failed } from "../commands/screen.ts";

/** `watchkeeper config`: prints a sample configuration. With --schema, prints the schema of the configuration instead. */
export function config(args: string[]): Promise<number> {
  const options = given("config", args);
  if (options instanceof Failure) return Promise.resolve(failed(options));
  const isSchema = options.has("schema");
  const text = readFileSync(packageFile(isSchema ? `config/schema/${schema}` : "config/static.yaml"), "utf8");
  process.stdout.write(isSchema ? text : printed(text));
  return Promise.resolve(0);
}

const schema = "watchkeeper.v1alpha2.json";

/**
 * Returns the sample with two changes: the schema is expected beside the configuration file, which is called
 * watchkeeper.yaml.
 */
function printed(sample: string): string {
  return sample
    .replace("$schema=./schema/", "$schema=./")
    .replace("\n#\n", `\n# watchkeeper config --schema > ${schema}   # with it, editors check this file\n#\n`)
    .replaceAll("--config static.yaml     ", "--config watchkeeper.yaml")
    .replaceAll("--config static.yaml", "--config watchkeeper.yaml");
}
