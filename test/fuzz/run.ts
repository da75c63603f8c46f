/**
 * npm run fuzz [target] [seconds] fuzzes one target, or all in turn, each for 60 s by default. Inputs that add coverage
 * are written to test/fuzz/corpus. Crashes are printed with the input in base64, and the exit code is then 1. SEED=n
 * selects another random sequence.
 */
import { writeCorpus } from "./corpus.ts";
import { hunt, lineOf } from "./hunt.ts";
import { type TargetName, targetNames } from "./targets.ts";

const isName = (word: string): word is TargetName => targetNames.some((name) => name === word);

const words = process.argv.slice(2);
const names = words.filter((word) => isName(word));
const seconds = Number(words.find((word) => /^\d+$/.test(word)) ?? 60);
const stray = words.filter((word) => !isName(word) && !/^\d+$/.test(word));
if (stray.length > 0) {
  process.stderr.write(`No target "${stray.join()}": there are ${targetNames.join(", ")}\n`);
  process.exit(2);
}
const seed = Number(process.env["SEED"] ?? Math.floor(performance.timeOrigin) % 1_000_000);
for (const name of names.length > 0 ? names : targetNames) {
  const result = await hunt(name, seconds, seed);
  writeCorpus(name, result.corpus);
  process.stdout.write(`${lineOf(name, seconds, result)}, seed ${seed}\n`);
  for (const { input, message } of result.crashes) {
    process.stdout.write(
      `  ${input.toString("base64")}\n  ${message.split("\n").slice(0, 6).join("\n    ")}\n`,
    );
    process.exitCode = 1;
  }
}
