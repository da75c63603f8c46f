/**
 * node bench/workers.ts [--rounds 5]
 *
 * Compares, on one core, one watchkeeper process, two processes that share nothing, and a parent with two workers. Two
 * independent processes show the cost of sharing a core and of halving each process's load. Any further cost of the
 * workers comes from the parent and its messages. Prints the median CPU time of a request and the median throughput.
 * Takes four minutes.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { watchkeeperAt } from "./peers/watchkeeper.ts";
import { countOthers, pinSelf, progress } from "./processes.ts";
import { median } from "./report.ts";
import { startRig } from "./rig.ts";
import { type SmallFigures, smallCost } from "./small.ts";
import { requireTools } from "./tools.ts";

const loads = [
  { clients: 8, streams: 16, seconds: 3 },
  { clients: 64, streams: 1, seconds: 3 },
  { clients: 256, streams: 1, seconds: 3 },
];

const { values } = parseArgs({ options: { rounds: { type: "string", default: "5" } } });
requireTools();
pinSelf();
const here = join(import.meta.dirname, "..");
const one = watchkeeperAt("watchkeeper", here);
const workers = watchkeeperAt("watchkeeper-workers", here, { workers: 2 });
const rig = await startRig();
const otherCores = countOthers();
const variants = {
  "one process": [await rig.launch(one, "static")],
  "two processes": [await rig.launch(one, "static"), await rig.launch(one, "static")],
  "a parent and two workers": [await rig.launch(workers, "static")],
};
for (const load of loads) {
  const name = `${load.clients}x${load.streams}`;
  const figures = new Map<string, SmallFigures[]>();
  progress(`${name} warm-up\n`);
  for (const proxies of Object.values(variants)) await smallCost(proxies, load);
  for (let round = 1; round <= Number(values.rounds); round++) {
    progress(`${name} round ${round}/${values.rounds}\n`);
    // Every other round runs backwards, so that a machine that becomes slower affects all variants alike.
    const all = Object.entries(variants);
    for (const [variant, proxies] of round % 2 === 0 ? all.toReversed() : all)
      figures.set(variant, [...(figures.get(variant) ?? []), await smallCost(proxies, load)]);
  }
  for (const [variant, rounds] of figures) {
    const cpu = rounds.map(({ cpuUs }) => cpuUs);
    const range = `${Math.min(...cpu).toFixed(1)} to ${Math.max(...cpu).toFixed(1)}`;
    const perSecond = median(rounds.map((round) => round.perSecond)).toFixed(0);
    process.stdout.write(
      `figure: ${name}, ${variant}: ${median(cpu).toFixed(1)} µs of CPU a request (${range}), ${perSecond} requests a second\n`,
    );
  }
}
const othersCores = otherCores();
process.stdout.write(`figure: others used ${othersCores.toFixed(1)} cores meanwhile\n`);
for (const proxy of Object.values(variants).flat()) await proxy.stop();
await rig.stop();
process.exit(0);
