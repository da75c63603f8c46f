/**
 * npm run fuzz [target] [seconds]     one target, or all in turn; 60 s each unless said otherwise
 *
 * What it finds worth keeping goes into test/fuzz/corpus. Crashes are printed with the input in base64, and make it end
 * with 1. SEED=n plays another sequence.
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
