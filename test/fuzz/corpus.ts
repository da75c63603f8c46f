/** The corpus: one file for each target, with one input on each line, in base64, the shortest first. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The most inputs of a corpus. Only the shortest are kept, because every test run reads the whole corpus. */
export const mostInputs = 400;

const fileOf = (name: string): string => fileURLToPath(new URL(`./corpus/${name}.txt`, import.meta.url));

export function readCorpus(name: string): Buffer[] {
  const file = fileOf(name);
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => Buffer.from(line, "base64"));
}

export function writeCorpus(name: string, inputs: readonly Buffer[]): void {
  const lines = inputs
    .toSorted((a, b) => a.length - b.length || a.compare(b))
    .slice(0, mostInputs)
    .map((input) => `${input.toString("base64")}\n`);
  writeFileSync(fileOf(name), lines.join(""));
}
