/**
 * Upgrades of watchkeeper under load, in every shape in which it can be deployed.
 *
 *   npm run test:upgrades [-- --upgrades 50 --seconds 600 --only "two static pods,Deployment" --json FILE]
 *
 * Fails if a client noticed an upgrade of a shape that is seamless.
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { lacking } from "../rig/parts.ts";
import { summary } from "../storm/tell.ts";
import { noticed, play } from "./play.ts";
import { shapes } from "./shapes.ts";
import { heads, lineOf } from "./table.ts";

const { values } = parseArgs({
  options: {
    upgrades: { type: "string", default: "50" },
    /** No upgrade of a shape begins later than this many seconds after the shape's start. */
    seconds: { type: "string", default: "3600" },
    only: { type: "string", default: "" },
    json: { type: "string" },
  },
});
const only = values.only.split(",").filter((name) => name !== "");
const lines: (readonly string[])[] = [];
for (const shape of shapes.filter(({ name }) => only.length === 0 || only.includes(name))) {
  console.log(`${new Date().toISOString()} ${shape.name}`);
  const missing = (shape.needs ?? []).map(lacking).filter((what) => what !== undefined);
  if (missing.length > 0) {
    console.log(`  skipped: needs ${missing.join("; ")}`);
    continue;
  }
  const played = await play(shape, { most: Number(values.upgrades), seconds: Number(values.seconds) });
  const wrong = noticed(played);
  for (const line of summary(played.counts.storm).split("\n")) console.log(`  ${line}`);
  for (const what of [...played.counts.leaseFailures, ...wrong]) console.log(`  noticed: ${what}`);
  lines.push(lineOf(played));
  if (shape.isSeamless && wrong.length > 0) process.exitCode = 1;
}
console.log(
  `\n${[heads, heads.map(() => "---"), ...lines].map((line) => `| ${line.join(" | ")} |`).join("\n")}`,
);
if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(lines));
