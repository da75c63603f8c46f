import { readFileSync } from "node:fs";
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { readText } from "../../base/read-text.ts";
import { parseConfig } from "../../config/config.ts";
import { isProblems, lineOf, type Problem } from "../../config/problem.ts";
import { converted } from "../../config/v1alpha1.ts";
import { readYaml } from "../../config/yaml-document.ts";
import { ownFile } from "../../program/own-files.ts";
import { given } from "../commands/options.ts";
import { complain, failed } from "../commands/screen.ts";

/**
 * `watchkeeper config`: prints a sample configuration. With --convert, converts a file to the current version of the
 * format, and prints the result.
 */
export function config(args: string[]): Promise<number> {
  const options = given("config", args);
  if (options instanceof Failure) return Promise.resolve(failed(options));
  const file = options.text("convert");
  if (file !== undefined) return Promise.resolve(convert(file));
  const sample = readFileSync(ownFile("../config/static.yaml"), "utf8");
  process.stdout.write(printed(sample));
  return Promise.resolve(0);
}

/** Exit codes: 0 printed, 1 printed but not valid, 2 not readable. Problems go to stderr. */
function convert(file: string): number {
  const text = readText(file, limits.configBytes);
  if (text instanceof Failure) return complain(`${file}: ${text.message}`, 2);
  const document = readYaml(text, file);
  if (isProblems(document)) return complain(linesOf(document), 2);
  const next = converted(document);
  process.stdout.write(next);
  const outcome = parseConfig(next, file);
  if (!isProblems(outcome)) return 0;
  return complain(
    `The printed file is not valid; line numbers are those of that file:\n${linesOf(outcome)}`,
    1,
  );
}

function linesOf(problems: readonly Problem[]): string {
  return problems.map(lineOf).join("\n");
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
