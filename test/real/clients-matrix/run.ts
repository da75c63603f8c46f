/**
 * Runs clients of Kubernetes with all their operations: directly at an apiserver, through the proxy, and through the
 * proxy while apiservers fail in turn. A fault drops an apiserver's packets, stops, kills or terminates its process, or
 * replaces the process in a rolling restart.
 *
 *   npm run test:clients [-- --modes "direct,through" --clients "kubectl 1.36,helm" --only "exec,cp" --rounds 12]
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { rounds } from "../load/faults.ts";
import { clusterNeeds, lacking } from "../rig/parts.ts";
import { clientsNeeds, operationsOf } from "./clients.ts";
import { defects, modes, table } from "./outcome.ts";
import { backendCount, Play } from "./play.ts";

const { values } = parseArgs({
  options: {
    modes: { type: "string", default: modes.join(",") },
    /** Beginnings of client names, separated by commas. */
    clients: { type: "string", default: "" },
    /** Parts of operation names, separated by commas. */
    only: { type: "string", default: "" },
    /** Number of faults in the mode "through with faults". */
    rounds: { type: "string", default: "12" },
    /** No fault begins later than this many minutes after the start. */
    minutes: { type: "string", default: "60" },
    /** File for all outcomes, as JSON. */
    json: { type: "string" },
  },
});
const list = (text: string): string[] => text.split(",").filter((part) => part !== "");
const missing = [...clusterNeeds, ...clientsNeeds].map(lacking).filter((what) => what !== undefined);
if (missing.length > 0) throw new Error(`Cannot run the clients: needs ${missing.join("; ")}`);
const chosen = modes.filter((mode) => list(values.modes).includes(mode));
const names = list(values.clients);
const parts = list(values.only);
const operations = operationsOf(names, console.log).filter(
  ({ name }) => parts.length === 0 || parts.some((part) => name.includes(part)),
);
if (chosen.length === 0 || operations.length === 0)
  throw new Error("Cannot run: no mode or no operation is left");

const faults = rounds(backendCount).slice(0, Number(values.rounds));
const began = Date.now();
const outcomes = await Play.run({
  modes: chosen,
  operations,
  faults,
  maxMs: Number(values.minutes) * 60_000,
  say: console.log,
});
if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(outcomes, undefined, 1));
console.log(`\n${table(outcomes)}\n\n${table(outcomes, true)}\n`);
console.log(
  `${outcomes.length} runs of ${operations.length} operations in ${Math.round((Date.now() - began) / 1_000)} s`,
);
const missed = defects(outcomes);
for (const miss of missed) console.log(`MISSED ${miss}`);
process.exitCode = missed.length === 0 ? 0 : 1;
