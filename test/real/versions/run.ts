/**
 * Versions of Kubernetes: each alone and two behind one proxy, with the faults of the matrix; watches of every form; a CRD
 * with two versions; and a rolling upgrade from each version to the next. Builds the kube-apiservers that it needs.
 *
 *   npm run test:versions [-- --parts "upgrade,matrix,forms,custom,only-new" --only "1.35+1.36,1.37" --seed 1]
 */
import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";
import { Stage } from "../load/stage.ts";
import { playShort, rowsOf } from "../matrix/play-all.ts";
import { type Played, table } from "../matrix/table.ts";
import { clusterNeeds, lacking, programOf, versions } from "../rig/parts.ts";
import { playConversion } from "./custom.ts";
import { playSetting, settings } from "./forms.ts";
import { kindsOf, type Mix, mixes, nameOf, pairs } from "./mixes.ts";
import { playOnlyNew } from "./only-new.ts";
import { upgrade } from "./upgrade.ts";

const { values } = parseArgs({
  options: {
    parts: { type: "string", default: "upgrade,matrix,forms,custom,only-new" },
    /** Versions as the tables have them: "1.35+1.36"; of `forms`, more of the row's name. All unless set. */
    only: { type: "string", default: "" },
    seed: { type: "string", default: "1" },
  },
});
const parts = values.parts.split(",");
const only = values.only.split(",").filter((name) => name !== "");
const rows = rowsOf(["drop both", "SIGSTOP", "SIGKILL", "SIGTERM", "readyz false"]);

/** A table's row. */
type Line = readonly (string | number)[];

const missed: string[] = [];
const tables: string[] = [];

function isWanted(name: string): boolean {
  return (
    only.length === 0 ||
    only.some((wanted) => `${name}:`.startsWith(wanted.includes(":") ? wanted : `${wanted}:`))
  );
}

function add(heads: Line, lines: readonly Line[]): void {
  if (lines.length === 0) return;
  const all = [heads, heads.map(() => "---"), ...lines];
  tables.push(all.map((line) => `| ${line.join(" | ")} |`).join("\n"));
}

function miss(name: string, wrong: readonly string[]): string {
  for (const what of wrong) missed.push(`${name}: ${what}`);
  return wrong.length === 0 ? "pass" : `FAIL (${wrong.length})`;
}

function build(): void {
  const needed = versions.filter((one) => only.length === 0 || only.some((name) => name.includes(one)));
  const programs = needed.map((version) => programOf("kube-apiserver", version));
  const absent = programs.filter((program) => lacking(program) !== undefined);
  if (absent.length > 0) {
    const script = new URL("../build.ts", import.meta.url).pathname;
    spawnSync(process.execPath, [script, ...absent], { stdio: "inherit" });
  }
  const missing = [...clusterNeeds, "informer" as const, ...programs]
    .map(lacking)
    .filter((what) => what !== undefined);
  if (missing.length > 0) throw new Error(`Cannot test versions: needs ${missing.join("; ")}`);
}

async function playMix(mix: Mix): Promise<Played[]> {
  const stage = await Stage.start({ apiservers: kindsOf(mix) });
  const played: Played[] = [];
  try {
    for (const row of rows) played.push(await playShort(stage, row, Number(values.seed)));
  } finally {
    await stage.stop();
  }
  return played;
}

async function matrix(): Promise<void> {
  const lines: Line[] = [];
  for (const mix of mixes.filter((one) => isWanted(nameOf(one)))) {
    console.log(`${new Date().toISOString()} matrix ${nameOf(mix)}`);
    const played = await playMix(mix);
    console.log(table(played));
    const results = played.flatMap((one) => one.results);
    const watches = results.flatMap((result) => result.watches);
    const gets = results.flatMap((result) => result.gets);
    const wrong = played.flatMap(({ row, wrong: some, late }) =>
      [...some, ...late].map((what) => `${row.name}: ${what}`),
    );
    lines.push([
      nameOf(mix),
      results.length,
      watches.reduce((sum, { ends }) => sum + ends.length, 0),
      watches.reduce((sum, { difference: { missing, doubled } }) => sum + missing + doubled, 0),
      gets.length,
      Math.max(...gets.map(({ headMs }) => headMs)),
      miss(`matrix ${nameOf(mix)}`, wrong),
    ]);
  }
  const heads = ["versions", "faults", "watch ends", "events missing or doubled", "GETs", "slowest, ms", ""];
  add(heads, lines);
}

async function forms(): Promise<void> {
  const lines: Line[] = [];
  for (const setting of settings.filter(({ name }) => isWanted(name))) {
    console.log(`${new Date().toISOString()} forms ${setting.name}`);
    const { name, watches, events, faults, ends, lists, wrong, figures } = await playSetting(setting);
    for (const line of figures) console.log(`  ${line}`);
    lines.push([name, watches, events, faults, ends, lists, miss(`forms ${name}`, wrong)]);
  }
  const heads = ["versions and gates", "watches", "events", "faults", "ends of CBOR watches", "lists", ""];
  add(heads, lines);
}

async function custom(): Promise<void> {
  const lines: Line[] = [];
  for (const mix of pairs(1).filter((one) => isWanted(nameOf(one)))) {
    console.log(`${new Date().toISOString()} custom ${nameOf(mix)}`);
    const { name, watches, events, ends, reasons, converted, wrong } = await playConversion(mix);
    const told = reasons.join(", ") || "–";
    lines.push([name, watches, events, converted, ends, told, miss(`custom ${name}`, wrong)]);
  }
  const heads = ["versions", "watches", "events", "objects converted", "watch ends", "reasons", ""];
  add(heads, lines);
}

async function upgrades(): Promise<void> {
  const lines: Line[] = [];
  for (const [from, to] of pairs(1).filter((one) => isWanted(nameOf(one)))) {
    console.log(`${new Date().toISOString()} upgrade ${from} to ${to}`);
    const upgraded = await upgrade(from, to);
    for (const line of upgraded.figures) console.log(`  ${line}`);
    const { seconds, watches, events, gets, renewals, longestRenewalMs, differing, wrong } = upgraded;
    const name = `${from} to ${to}`;
    const result = miss(`upgrade ${name}`, wrong);
    lines.push([name, seconds, watches, events, gets, differing, renewals, longestRenewalMs, result]);
  }
  const heads = [
    "upgrade",
    "s",
    "watches",
    "events",
    "GETs",
    "reads of differing APIs",
    "renewals",
    "longest, ms",
    "",
  ];
  add(heads, lines);
}

async function onlyNew(): Promise<void> {
  const lines: Line[] = [];
  for (const mix of pairs(1).filter((one) => isWanted(nameOf(one)))) {
    console.log(`${new Date().toISOString()} only-new ${nameOf(mix)}`);
    const played = await playOnlyNew(mix);
    if (played === undefined) continue;
    const { name, path, endedMs, end, reason, wrong } = played;
    lines.push([name, path, `${end} after ${endedMs} ms`, reason, miss(`only-new ${name}`, wrong)]);
  }
  add(["versions", "only the newer serves", "the watch ended", "reason", ""], lines);
}

build();
if (parts.includes("upgrade")) await upgrades();
if (parts.includes("matrix")) await matrix();
if (parts.includes("forms")) await forms();
if (parts.includes("custom")) await custom();
if (parts.includes("only-new")) await onlyNew();
for (const one of tables) console.log(`\n${one}`);
for (const what of missed) console.log(`MISSED ${what}`);
process.exitCode = missed.length === 0 ? 0 : 1;
