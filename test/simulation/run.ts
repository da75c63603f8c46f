/**
 * Plays seeds and prints what went wrong, then the figures.
 *
 *   node test/simulation/run.ts [--seed 1] [--runs 1] [--trace]     a seed that failed: --seed N --trace
 */
import { parseArgs } from "node:util";
import { playAll, summaryOf } from "./play-all.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    runs: { type: "string", default: "1" },
    trace: { type: "boolean", default: false },
  },
});
const figures = playAll(Number(values.seed), Number(values.runs), {
  failed: ({ seed, problems }) => console.log(`seed ${seed} failed:\n  ${problems.join("\n  ")}`),
  trace: values.trace ? (line) => console.log(line) : undefined,
});
console.log(summaryOf(figures));
process.exitCode = figures.failed === 0 ? 0 : 1;
