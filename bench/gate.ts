/**
 * npm run bench:gate [-- --record] [--pairs N]
 *
 * Fails if watchkeeper uses more CPU time than before. Runs watchkeeper and nghttpx by turns, for about a minute in
 * all, and compares the ratio of their CPU times with the one in gate.json. If the machine is too busy to judge, says
 * so and ends with exit code 0.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { boundsOf, isTooWide, type Judgement, judge, tolerance } from "./gate-judge.ts";
import type { Proxy } from "./peer.ts";
import { nghttpx } from "./peers/nghttpx.ts";
import { watchkeeperAt } from "./peers/watchkeeper.ts";
import { countOthers, pinSelf, progress } from "./processes.ts";
import { median } from "./report.ts";
import { type Rig, startRig } from "./rig.ts";
import type { Scenario } from "./scenario.ts";
import { scenario as list } from "./scenarios/list.ts";
import { scenario as small8x16 } from "./scenarios/small-8x16.ts";
import { scenario as small64x1 } from "./scenarios/small-64x1.ts";
import { requireTools } from "./tools.ts";

/** A scenario, and the key of the figure that is compared. */
const gates: readonly (readonly [Scenario, string])[] = [
  [small8x16, "cpuUs"],
  [small64x1, "cpuUs"],
  [list, "cpuMs"],
];
const file = join(import.meta.dirname, "gate.json");

type Recorded = {
  readonly date: string;
  readonly machine: string;
  readonly ratios: Readonly<Record<string, number>>;
};

const { values } = parseArgs({
  options: { record: { type: "boolean", default: false }, pairs: { type: "string", default: "8" } },
});
const pairs = Number(values.pairs);

type Proxies = { readonly ours: Proxy; readonly peer: Proxy };
type Run = { readonly ratios: readonly number[]; readonly othersCores: number };

/**
 * Returns the proxy with CPU times that are exact to nanoseconds and not to ticks of 10 ms, because a short run takes
 * only a few ticks.
 */
function finely(proxy: Proxy): Proxy {
  return { ...proxy, cpuMs: proxy.fineCpuMs };
}

/**
 * Measures both proxies by turns. Each is first in half of the pairs. Returns each pair's ratio of watchkeeper's CPU
 * time to the peer's.
 */
async function run(rig: Rig, { ours, peer }: Proxies, [scenario, key]: (typeof gates)[number]): Promise<Run> {
  const measure = async (proxy: Proxy): Promise<number> =>
    (await scenario.measure({ proxy, rig, isQuick: true }))[key] ?? Number.NaN;
  for (const proxy of [ours, peer, ours]) await measure(proxy);
  const otherCores = countOthers();
  const ratios: number[] = [];
  for (let pair = 0; pair < pairs; pair += 1) {
    const [first, second] = pair % 2 === 0 ? [ours, peer] : [peer, ours];
    const figures = [await measure(first), await measure(second)];
    const [own = Number.NaN, other = Number.NaN] = pair % 2 === 0 ? figures : figures.toReversed();
    ratios.push(own / other);
    progress(".");
  }
  const othersCores = otherCores();
  return { ratios, othersCores };
}

function lineOf(name: string, { ratios, othersCores }: Run, limit: number, verdict: Judgement): string {
  const [low, high] = boundsOf(ratios).map((bound) => bound.toFixed(2));
  const found = `${median(ratios).toFixed(2)} × nghttpx (${low} to ${high})`;
  return `${name}: ${verdict}: ${found}, at most ${limit.toFixed(2)}; other processes used ${othersCores.toFixed(1)} cores`;
}

/**
 * Runs a scenario a second time before it fails, because a busy machine is less likely to disturb two runs than one.
 */
async function gate(
  rig: Rig,
  proxies: Proxies,
  one: (typeof gates)[number],
  recorded: number,
): Promise<Judgement> {
  let first = await run(rig, proxies, one);
  let verdict = judge(first.ratios, first.othersCores, recorded);
  if (verdict !== "passed") {
    const second = await run(rig, proxies, one);
    const othersCores = Math.max(first.othersCores, second.othersCores);
    first = { ratios: [...first.ratios, ...second.ratios], othersCores };
    verdict = judge(first.ratios, othersCores, recorded);
  }
  process.stdout.write(`\n${lineOf(one[0].name, first, tolerance * recorded, verdict)}\n`);
  return verdict;
}

async function record(rig: Rig, proxies: Proxies): Promise<void> {
  const ratios: Record<string, number> = {};
  for (const one of gates) {
    const { ratios: found, othersCores } = await run(rig, proxies, one);
    const [low, high] = boundsOf(found);
    const name = one[0].name;
    process.stdout.write(
      `\n${name}: ${median(found).toFixed(3)} (${low.toFixed(2)} to ${high.toFixed(2)}), others ${othersCores.toFixed(1)} cores\n`,
    );
    if (isTooWide(found))
      process.stdout.write(`${name}: too uncertain to record: repeat on a quieter machine\n`);
    else ratios[name] = Math.round(median(found) * 1000) / 1000;
  }
  const now: Recorded = {
    date: new Date().toISOString().slice(0, 10),
    machine: `${cpus().length} × ${cpus()[0]?.model ?? "unknown"}, Node ${process.versions.node}`,
    ratios: { ...recordedOf().ratios, ...ratios },
  };
  writeFileSync(file, `${JSON.stringify(now, undefined, 2)}\n`);
}

function recordedOf(): Recorded {
  return JSON.parse(readFileSync(file, "utf8")) as Recorded;
}

const missing = nghttpx.missing();
if (missing !== undefined) {
  process.stdout.write(`bench:gate: NOT JUDGED: nghttpx is missing (${missing})\n`);
  process.exit(0);
}
requireTools();
pinSelf();
const rig = await startRig();
const ours = finely(
  await rig.launch(watchkeeperAt("watchkeeper", join(import.meta.dirname, "..")), "static"),
);
const peer = finely(await rig.launch(nghttpx, "static"));
const verdicts: Judgement[] = [];
if (values.record) await record(rig, { ours, peer });
else {
  const { date, machine, ratios } = recordedOf();
  process.stdout.write(`bench:gate: compared with ${date}, ${machine}\n`);
  for (const one of gates) {
    const recorded = ratios[one[0].name];
    if (recorded !== undefined) verdicts.push(await gate(rig, { ours, peer }, one, recorded));
  }
}
await Promise.all([ours.stop(), peer.stop()]);
await rig.stop();
if (verdicts.includes("not judged"))
  process.stdout.write(
    "bench:gate: NOT JUDGED where it says so: the machine is too busy. Run it again later.\n",
  );
process.exit(verdicts.includes("failed") ? 1 : 0);
