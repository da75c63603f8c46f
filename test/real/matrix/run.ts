/**
 * The whole matrix: every fault in several runs, at random moments.
 *
 *   npm run test:matrix [-- --runs 5 --seed 1 --rows SIGSTOP,etcd]
 *   WATCHKEEPER_REAL_WORKERS=2 npm run test:matrix    # a proxy with two workers
 */
import { parseArgs } from "node:util";
import { playAll } from "./play-all.ts";
import { table } from "./table.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    runs: { type: "string", default: "5" },
    rows: { type: "string", default: "" },
  },
});
const words = values.rows.split(",").filter((word) => word !== "");
const plan = { seed: Number(values.seed), runs: Number(values.runs), words };
const played = await playAll(plan, (line) => console.log(line));
console.log(`\n${table(played)}`);
process.exitCode = played.every(({ wrong, late }) => wrong.length + late.length === 0) ? 0 : 1;
