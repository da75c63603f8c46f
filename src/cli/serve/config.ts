import { readFileSync } from "node:fs";
import { Failure } from "../../base/failure.ts";
import { ownFile } from "../../program/own-files.ts";
import { given } from "../commands/options.ts";
import { failed } from "../commands/screen.ts";

/** `watchkeeper config`: prints a sample configuration. */
export function config(args: string[]): Promise<number> {
  const options = given("config", args);
  if (options instanceof Failure) return Promise.resolve(failed(options));
  const sample = readFileSync(ownFile("../config/static.yaml"), "utf8");
  process.stdout.write(printed(sample));
  return Promise.resolve(0);
}

/**
 * Returns the sample with two changes: the path of the schema is the one in this installation, and the configuration
 * file is called watchkeeper.yaml.
 */
function printed(sample: string): string {
  const schemas = ownFile("../config/schema");
  return sample
    .replace("$schema=./schema/", () => `$schema=${schemas}/`)
    .replaceAll("--config static.yaml     ", "--config watchkeeper.yaml")
    .replaceAll("--config static.yaml", "--config watchkeeper.yaml");
}
