/**
 * Tests with other versions of Kubernetes, each alone and two behind one proxy: the faults of the matrix, watches of
 * every form, a CRD with two versions, and a rolling upgrade from each version to the next. Builds the kube-apiservers
 * that it needs.
 *
 *   npm run test:versions [-- --parts "upgrade,matrix,forms,custom,only-new" --only "1.35+1.36,1.37" --seed 1]
 */
import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";
import { Stage } from "../load/stage.ts";
import { playShort, rowsOf } from "../matrix/play-all.ts";
import { type Played, table } from "../matrix/table.ts";
import { clusterNeeds, lacking, programOf } from "../rig/parts.ts";
import { playConversion } from "./custom.ts";
import { playSetting, settings } from "./forms.ts";
import { kindsOf, type Mix, mixes, nameOf, pairs, Selection, skewed } from "./mixes.ts";
import { playOnlyNew } from "./only-new.ts";
import { upgrade } from "./upgrade.ts";

const { values } = parseArgs({
  options: {
    parts: { type: "string", default: "upgrade,matrix,forms,custom,only-new" },
    /** Versions as in the tables, such as "1.35+1.36", or the whole name of a row of `forms`. Default: all. */
    only: { type: "string", default: "" },
    seed: { type: "string", default: "1" },
  },
});
const selection = new Selection(values.only);
const faults = ["drop both", "SIGSTOP", "SIGKILL", "SIGTERM", "readyz false"];
const rows = rowsOf(faults);
if (rows.length !== faults.length)
  throw new Error(`Not all of these are rows of the matrix: ${faults.join(", ")}`);

/** A row of a table. */
type Line = readonly (string | number)[];

const missed: string[] = [];
const tables: string[] = [];

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
  const programs = selection.versions.map((version) => programOf("kube-apiserver", version));
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
  for (const mix of mixes.filter((one) => selection.has(nameOf(one)))) {
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
  for (const setting of settings.filter(({ name }) => selection.has(name))) {
    console.log(`${new Date().toISOString()} forms ${setting.name}`);
    const formed = await playSetting(setting);
    const { name, seconds, watches, events, ends, lists, wrong, figures } = formed;
    for (const line of figures) console.log(`  ${line}`);
    const result = miss(`forms ${name}`, wrong);
    lines.push([name, seconds, watches, events, formed.faults, ends, lists, result]);
  }
  const heads = [
    "versions and gates",
    "s",
    "watches",
    "events",
    "faults",
    "ends of CBOR watches",
    "lists",
    "",
  ];
  add(heads, lines);
}

async function custom(): Promise<void> {
  const lines: Line[] = [];
  for (const mix of skewed.filter((one) => selection.has(nameOf(one)))) {
    console.log(`${new Date().toISOString()} custom ${nameOf(mix)}`);
    const { name, seconds, watches, events, converted, ends, directEnds, reasons, wrong, ...rest } =
      await playConversion(mix);
    const told = reasons.join(", ") || "–";
    const result = miss(`custom ${name}`, wrong);
    const done = `${rest.faults} faults, ${rest.edits} edits`;
    lines.push([name, seconds, done, watches, events, converted, ends, directEnds, told, result]);
  }
  const heads = [
    "versions",
    "s",
    "done",
    "watches",
    "events",
    "objects converted",
    "ends through",
    "ends directly",
  ];
  add([...heads, "reasons", ""], lines);
}

async function upgrades(): Promise<void> {
  const lines: Line[] = [];
  for (const [from, to] of pairs(1).filter((one) => selection.has(nameOf(one)))) {
    console.log(`${new Date().toISOString()} upgrade ${from} to ${to}`);
    const upgraded = await upgrade(from, to);
    for (const line of upgraded.figures) console.log(`  ${line}`);
    const { seconds, watches, events, gets, posts, renewals, longestRenewalMs, differing, wrong } = upgraded;
    const name = `${from} to ${to}`;
    const result = miss(`upgrade ${name}`, wrong);
    lines.push([name, seconds, watches, events, gets, posts, differing, renewals, longestRenewalMs, result]);
  }
  const heads = [
    "upgrade",
    "s",
    "watches",
    "events",
    "GETs",
    "POSTs",
    "reads of differing APIs",
    "renewals",
    "longest, ms",
    "",
  ];
  add(heads, lines);
}

async function onlyNew(): Promise<void> {
  const lines: Line[] = [];
  for (const mix of skewed.filter((one) => selection.has(nameOf(one)))) {
    console.log(`${new Date().toISOString()} only-new ${nameOf(mix)}`);
    const played = await playOnlyNew(mix);
    if (played === undefined) {
      lines.push([nameOf(mix), "nothing", "–", "–", "pass"]);
      continue;
    }
    const { name, path, endedMs, end, reason, wrong } = played;
    lines.push([name, path, `${end} after ${endedMs} ms`, reason, miss(`only-new ${name}`, wrong)]);
  }
  add(["versions", "only the newer serves", "the watch ended", "reason", ""], lines);
}

/** The parts by the names that `--parts` uses. */
const parts: Readonly<Record<string, () => Promise<void>>> = {
  upgrade: upgrades,
  matrix,
  forms,
  custom,
  "only-new": onlyNew,
};
const chosen = values.parts.split(",").map((name): (() => Promise<void>) => {
  const part = parts[name];
  if (part === undefined) throw new Error(`No part is named ${name}: ${Object.keys(parts).join(", ")}`);
  return part;
});
build();
for (const play of chosen) await play();
for (const one of tables) console.log(`\n${one}`);
if (tables.length === 0) missed.push("nothing was run");
for (const name of selection.unmatched) missed.push(`no part that was run has ${name}`);
for (const what of missed) console.log(`MISSED ${what}`);
process.exitCode = missed.length === 0 ? 0 : 1;
