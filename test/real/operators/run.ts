/**
 * Three replicas of the control plane and 20 operators behind one proxy, while one apiserver after the other fails.
 *
 *   npm run test:control-plane [-- --minutes 60 --every 30 --through watchkeeper --seed 1 --only "client-go,python" --json FILE]
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { clusterNeeds, lacking, type Need } from "../rig/parts.ts";
import { operators } from "./operators.ts";
import { type Played, play } from "./play.ts";
import { noticed, table } from "./table.ts";
import { kinds, lackedBy } from "./through.ts";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "60" },
    /** Seconds from one fault to the next. */
    every: { type: "string", default: "30" },
    through: { type: "string", default: kinds.join(",") },
    /** Changes the order of the faults. */
    seed: { type: "string" },
    /** Names of operators, separated by commas. Default: all. */
    only: { type: "string", default: "" },
    /** File for all results, as JSON. */
    json: { type: "string" },
  },
});
const wanted = values.through.split(",");
const chosen = kinds.filter((kind) => wanted.includes(kind));
if (chosen.length === 0)
  throw new Error(`Cannot run through "${values.through}": ${kinds.join(", ")} are known`);
const needs: readonly Need[] = [...clusterNeeds, "kube-scheduler", "kube-controller-manager"];
const missing = needs.map(lacking).filter((what) => what !== undefined);
if (missing.length > 0) throw new Error(`Cannot run: needs ${missing.join("; ")}`);

const names = values.only.split(",").filter((name) => name !== "");
const skipped: string[] = [];
/** The selected operators whose programs exist or can be built. */
const ready = operators
  .filter(({ name }) => names.length === 0 || names.includes(name))
  .filter(({ name, made }) => {
    const lacked = made.prepare();
    if (lacked === undefined) return true;
    console.log(`skip: ${name} needs ${lacked}`);
    skipped.push(`operator ${name} did not run: it needs ${lacked}`);
    return false;
  });
const plan = {
  minutes: Number(values.minutes),
  everyMs: Number(values.every) * 1_000,
  ...(values.seed === undefined ? {} : { seed: Number(values.seed) }),
  operators: ready,
};
const played: Played[] = [];
for (const kind of chosen) {
  const lacked = lackedBy(kind);
  if (lacked !== undefined) {
    console.log(`skip: needs ${lacked}`);
    continue;
  }
  console.log(`${new Date().toISOString()} through ${kind}`);
  const one = await play(kind, plan);
  played.push(one);
  // Not printed for other proxies: they have hundreds of such lines.
  const told = kind === "watchkeeper" ? noticed(one) : [];
  for (const line of [...told, ...one.wrong]) console.log(line);
  console.log(table([one]));
  if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(played, undefined, 1));
}
console.log(`\n${table(played)}`);
const missed = [
  ...skipped,
  ...played.flatMap((one) => [...one.wrong, ...(one.kind === "watchkeeper" ? noticed(one) : [])]),
];
for (const miss of missed) console.log(`MISSED ${miss}`);
process.exitCode = missed.length === 0 ? 0 : 1;
