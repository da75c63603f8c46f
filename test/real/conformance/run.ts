/**
 * Runs Kubernetes' own conformance suite: directly at an apiserver, through the proxy, and through the proxy while
 * apiservers fail in turn. A fault drops an apiserver's packets, stops, kills or terminates its process, or replaces
 * the process in a rolling restart.
 *
 *   npm run test:conformance [-- --modes "straight,through" --only "Watchers,Garbage collector" --processes 4 --every 25]
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { clusterNeeds, lacking } from "../rig/parts.ts";
import { conformanceNeeds } from "./needs.ts";
import { modes, type Played, play } from "./play.ts";
import { defects, table } from "./table.ts";

const { values } = parseArgs({
  options: {
    modes: { type: "string", default: modes.join(",") },
    /** Parts of spec titles, separated by commas. Default: all specs that can pass. */
    only: { type: "string", default: "" },
    processes: { type: "string", default: "4" },
    /** Seconds from one fault to the next. */
    every: { type: "string", default: "25" },
    /** Time limit of one run. */
    minutes: { type: "string", default: "120" },
    /** File for all results, as JSON. */
    json: { type: "string" },
  },
});
const missing = [...clusterNeeds, ...conformanceNeeds].map(lacking).filter((what) => what !== undefined);
if (missing.length > 0) throw new Error(`Cannot run the suite: needs ${missing.join("; ")}`);
const wanted = values.modes.split(",");
const chosen = modes.filter((mode) => wanted.includes(mode));
if (chosen.length === 0) throw new Error(`Cannot run "${values.modes}": modes are ${modes.join(", ")}`);
const only = values.only.split(",").filter((title) => title !== "");
const plan = {
  ...(only.length > 0 ? { only } : {}),
  processes: Number(values.processes),
  timeoutMinutes: Number(values.minutes),
  faultEveryMs: Number(values.every) * 1_000,
};

const played: Played[] = [];
for (const mode of chosen) {
  console.log(`${new Date().toISOString()} ${mode}`);
  const one = await play(mode, plan);
  played.push(one);
  for (const { title, passed, seconds, message } of one.results) {
    if (!passed) console.log(`FAILED after ${seconds.toFixed(0)} s: ${title}\n${message}\n`);
  }
  for (const line of one.reflectors.warnings) console.log(line);
  console.log(table([one]));
  if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(played, undefined, 1));
}
console.log(`\n${table(played)}`);
const missed = [
  ...defects(played),
  ...played.flatMap(({ mode, wrong }) => wrong.map((what) => `${mode}: ${what}`)),
];
for (const miss of missed) console.log(`MISSED ${miss}`);
process.exitCode = missed.length === 0 ? 0 : 1;
