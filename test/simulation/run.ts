/**
 * Plays seeds, and prints the problems and then the figures.
 *
 *   node test/simulation/run.ts [--scene path|watches] [--seed 1] [--runs 1] [--trace] [--lenient]
 *   node test/simulation/run.ts --scene fleet [--nodes 5000]
 *   node --expose-gc test/simulation/run.ts --scene fleet [--nodes 5000] --hours 24 [--faults 3]
 *   node test/simulation/run.ts --scene operators [--nodes 20] --hours 24 [--mistakes 12]
 *
 * To replay a seed that failed, use --seed N --trace. The last lines of the trace are often enough: --last 200.
 */
import { parseArgs } from "node:util";
import { wallClock } from "../../src/base/clock.ts";
import { figureOf } from "./operators/figure.ts";
import { loadOperators } from "./operators/load.ts";
import { playAll, summaryOf } from "./play-all.ts";
import { Day } from "./watches/day.ts";
import { Fleet, type FleetFigures } from "./watches/fleet.ts";
import { playAll as playWatches, summaryOf as summaryOfWatches } from "./watches/play-all.ts";

const { values } = parseArgs({
  options: {
    scene: { type: "string", default: "path" },
    seed: { type: "string", default: "1" },
    runs: { type: "string", default: "1" },
    trace: { type: "boolean", default: false },
    last: { type: "string", default: "100000" },
    nodes: { type: "string", default: "5000" },
    hours: { type: "string", default: "0" },
    faults: { type: "string", default: "3" },
    mistakes: { type: "string", default: "12" },
    lenient: { type: "boolean", default: false },
  },
});
const [seed, runs] = [Number(values.seed), Number(values.runs)];

/** Lines of the trace. Only the last ones are printed, because the interesting part is just before the failure. */
const lines: string[] = [];
const trace = values.trace ? (line: string): number => lines.push(line) : undefined;

const scenes: Readonly<Record<string, () => number | Promise<number>>> = {
  path,
  watches,
  fleet: values.hours === "0" ? fleet : day,
  operators,
};
const failed = (await scenes[values.scene]?.()) ?? 1;
for (const line of lines.slice(-Number(values.last))) console.log(line);
process.exitCode = failed === 0 ? 0 : 1;

function path(): number {
  const figures = playAll(seed, runs, {
    failed: ({ seed: which, problems }) => console.log(`seed ${which} failed:\n  ${problems.join("\n  ")}`),
    trace,
  });
  console.log(summaryOf(figures));
  return figures.failed;
}

function watches(): number {
  const from = wallClock.now();
  const sum = playWatches(
    seed,
    runs,
    ({ seed: which, problems }) => {
      const told = problems.map(({ validator, at, what }) => `  ${at} ms, ${validator}: ${what}`);
      console.log(`seed ${which} failed:\n${told.join("\n")}`);
    },
    { trace, isStrict: !values.lenient },
  );
  console.log(summaryOfWatches(sum, wallClock.now() - from));
  return sum.failed;
}

/** Plays the scale model. The reported memory is that of the proxy, its clients and its apiservers together. */
function fleet(): number {
  const from = wallClock.now();
  let peakBytes = 0;
  const tell = (line: string): void => {
    const { rss } = process.memoryUsage();
    peakBytes = Math.max(peakBytes, rss);
    console.log(`${line}, ${Math.round(rss / 1e6)} MB`);
  };
  const figures = new Fleet({ nodes: Number(values.nodes), seed, isStrict: !values.lenient, tell }).play();
  const { problems, watches: open, ...rest } = figures;
  printFindings(figures);
  console.log(
    `${values.nodes} nodes, ${open} watches at the end; ${rest.eventCount} events; at most ` +
      `${rest.peakAskedPerSecond} requests and ${rest.peakDialsPerSecond} new connections a second at the backends; ` +
      `${Math.round(rest.virtualMs / 1_000)} virtual seconds in ${Math.round((wallClock.now() - from) / 1_000)} s, ` +
      `${Math.round(peakBytes / 1e6)} MB at most`,
  );
  return problems.length;
}

/** Plays the scale model for `--hours`, with `--faults` faults an hour. */
function day(): number {
  const from = wallClock.now();
  let peakBytes = 0;
  const tell = (line: string): void => {
    const { rss } = process.memoryUsage();
    peakBytes = Math.max(peakBytes, rss);
    console.log(`${line}, ${Math.round(rss / 1e6)} MB, ${Math.round((wallClock.now() - from) / 1_000)} s`);
  };
  const [nodes, hours, faultsPerHour] = [values.nodes, values.hours, values.faults].map(Number);
  if (nodes === undefined || hours === undefined || faultsPerHour === undefined) return 1;
  const figures = new Day({
    nodes,
    hours,
    faultsPerHour,
    seed,
    isStrict: !values.lenient,
    tell,
    trace,
  }).play();
  const { problems, watches: open, ...rest } = figures;
  printFindings(figures);
  console.log(
    `${nodes} nodes, ${open} watches at the end; ${rest.faults} faults; at most ` +
      `${rest.peakAskedPerSecond} requests and ${rest.peakDialsPerSecond} new connections a second at the backends; ` +
      `even loads at most ${Math.round(rest.evenMs / 1_000)} s after a fault; ` +
      `${Math.round(rest.virtualMs / 1_000)} virtual seconds in ${Math.round((wallClock.now() - from) / 1_000)} s, ` +
      `${Math.round(peakBytes / 1e6)} MB at most`,
  );
  return problems.length;
}

/** Plays operators' mistakes between the faults of apiservers, `--mistakes` an hour, with a whole process. */
async function operators(): Promise<number> {
  const from = wallClock.now();
  const seconds = (): number => Math.round((wallClock.now() - from) / 1_000);
  const Scene = await loadOperators();
  const [nodes, hours, mistakesPerHour] = [values.nodes, values.hours, values.mistakes].map(Number);
  if (nodes === undefined || hours === undefined || mistakesPerHour === undefined) return 1;
  const tell = (line: string): void => console.log(`${line}, ${seconds()} s`);
  const played = await new Scene({ nodes, hours, mistakesPerHour, seed, tell, trace }).play();
  printFindings(played);
  console.log(`${figureOf(played)}; ${seconds()} s`);
  return played.problems.length;
}

function printFindings({ problems, counts }: Pick<FleetFigures, "problems" | "counts">): void {
  for (const { validator, at, what } of problems) console.log(`  ${at} ms, ${validator}: ${what}`);
  for (const [what, count] of [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1)))
    console.log(`  ${what}: ${count}`);
}
