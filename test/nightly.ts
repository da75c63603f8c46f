/**
 * Runs every suite that takes too long for `.ci/run`, one after the other, and prints a table with the result and the
 * time of each. A suite that fails does not stop the others; the exit code is then 1. Takes about ten hours on two cores.
 *
 * npm run nightly [-- word ...]
 *
 * Words select the suites whose command contains one of them.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, openSync } from "node:fs";
import { join } from "node:path";

const commands: readonly string[] = [
  "npm run -s check",
  "npm test",
  "npm run -s test:attacks",
  "npm run -s test:seeds",
  // Real sockets and files beside virtual time: on a busy machine a mistake is named too late.
  "npm run -s test:operators",
  "npm run -s test:guards",
  "npm run -s test:real",
  "npm run -s test:matrix",
  "npm run -s test:reloads",
  "npm run -s test:skew",
  "npm run -s test:shield",
  "npm run -s test:storm",
  "npm run -s test:herd",
  "npm run -s test:mass-move",
  "npm run -s test:crowd",
  "npm run -s test:healthy",
  "npm run -s test:idle",
  "npm run -s mutations",
  "npm run -s fuzz",
  "npm run -s test:versions",
  "npm run -s test:upgrades",
  "npm run -s test:clients",
  "npm run -s test:control-plane",
  "npm run -s test:conformance",
  "npm run -s test:soak",
];

const words = process.argv.slice(2);
const folder = join("coverage", "nightly");
mkdirSync(folder, { recursive: true });
const failed: string[] = [];
for (const command of commands.filter(
  (one) => words.length === 0 || words.some((word) => one.includes(word)),
)) {
  const log = join(folder, `${command.split(" ").at(-1)?.replace(":", "-")}.log`);
  const output = openSync(log, "w");
  const started = Date.now();
  const { status } = spawnSync("sh", ["-c", command], { stdio: ["ignore", output, output] });
  const took = `${((Date.now() - started) / 60_000).toFixed(1)} min`;
  process.stdout.write(`${status === 0 ? "✓" : "✗"} ${command}  ${took}  ${log}\n`);
  if (status !== 0) failed.push(command);
}
process.exitCode = failed.length > 0 ? 1 : 0;
