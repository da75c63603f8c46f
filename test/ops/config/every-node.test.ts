/**
 * Every key of the schema with every kind of YAML node as its value, and files that are no text, through each way by
 * which a configuration reaches the process: its start, the poll, SIGHUP, the API's reload, and `watchkeeper check`.
 * All of them call `parseConfig` or `loadConfig`. test/processes/bad-configs.test.ts does the same to a running proxy.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Entry, Journal } from "../../../src/events/journal.ts";
import { Reloads } from "../../../src/ops/cli/serve/reloads.ts";
import { type Config, loadConfig, parseConfig, watchConfig } from "../../../src/ops/config/config.ts";
import { isProblems, lineOf, type Problem } from "../../../src/ops/config/problem.ts";
import { configWith, contents, keys, nodes } from "../../support/bad-configs.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("ops/config/every-node");

const directory = mkdtempSync(join(tmpdir(), "watchkeeper-every-node-"));
test.after(() => rmSync(directory, { recursive: true }));
const file = join(directory, "x.yaml");

/** Returns why the outcome is none that an operator can use; "": it is a configuration, or its problems with places. */
function fault(outcome: Config | readonly Problem[], place = /^.*\.yaml:\d+:\d+$/): string {
  if (!isProblems(outcome)) return "";
  if (outcome.length === 0) return "no problem and no configuration";
  const lines = outcome.filter(
    ({ at, message }) => !place.test(at) || /internal error|\n {4}at /.test(message),
  );
  return [...lines.map(lineOf), ...outcome.map(lineOf).filter((line) => line.length > 1000)].join("\n");
}

test("each key with each kind of YAML node is read, or refused with file, line and column", () => {
  let [tried, taken] = [0, 0];
  const faults: string[] = [];
  for (const path of keys)
    for (const [name, node] of Object.entries(nodes)) {
      const outcome = parseConfig(configWith(path, node), "a.yaml");
      tried += 1;
      if (!isProblems(outcome)) taken += 1;
      const found = fault(outcome);
      if (found !== "") faults.push(`${path.join(".")}, ${name}: ${found}`);
    }
  process.stdout.write(`\n    figure: ${tried} configurations, ${taken} of them valid\n`);
  assert.equal(faults, []);
  assert.ok(
    keys.length > 150 && taken > 50,
    "the schema's keys are found, and the rest of the file is valid",
  );
});

test("an exception while a configuration is read is a problem of the file", () => {
  const broken = Object.defineProperty({}, "length", {
    get: () => {
      throw new Error("a fault of ours");
    },
  });
  const outcome = parseConfig(broken as string, "a.yaml");
  assert.equal(isProblems(outcome) && outcome.map(lineOf), [
    "a.yaml:1:1: cannot be read because of an internal error: a fault of ours",
  ]);
});

/** Puts something at the path of the configuration file that is no regular text file, by what it is. */
const unreadable: Readonly<Record<string, () => void>> = {
  ...Object.fromEntries(
    Object.entries(contents).map(([name, bytes]) => [name, () => writeFileSync(file, bytes)] as const),
  ),
  directory: () => mkdirSync(file),
  "named pipe": () => assert.is(spawnSync("mkfifo", [file]).status, 0),
  "link to itself": () => symlinkSync(file, file),
  "link to nothing": () => symlinkSync(join(directory, "nowhere"), file),
  "a device": () => symlinkSync("/dev/zero", file),
  vanished: () => {},
};

test("a file without a usable text is refused at the start and by the poll", () => {
  for (const [name, put] of Object.entries(unreadable)) {
    writeFileSync(file, configWith([], JSON.stringify({ kind: "x" })));
    const clock = manualClock();
    const polled: (Config | readonly Problem[])[] = [];
    const stop = watchConfig(file, { clock, onChange: (loaded) => polled.push(loaded) });
    rmSync(file, { force: true });
    put();
    for (let seconds = 0; seconds < 3; seconds += 1) clock.advance(1000);
    for (const outcome of [loadConfig(file), ...polled]) {
      assert.ok(isProblems(outcome), name);
      assert.is(fault(outcome, /x\.yaml(:\d+:\d+)?$/), "", name);
    }
    assert.is(polled.length, 1, `${name}: the poll sees it`);
    stop();
    rmSync(file, { recursive: true, force: true });
  }
});

test("SIGHUP and the API's reload refuse a bad file, name its problem, and apply the next good one", async () => {
  const journal = new Journal(manualClock());
  const entries: Entry[] = [];
  journal.subscribe((entry) => void entries.push(entry));
  const good = configWith(["logging", "format"], "JSON");
  writeFileSync(file, good);
  const reloads = new Reloads(file, journal);
  const applied: (Config | undefined)[] = [];
  const reload = async (config: Config | undefined): Promise<readonly string[]> => {
    await Promise.resolve();
    applied.push(config);
    return [];
  };
  reloads.apply({ reload } as Parameters<typeof reloads.apply>[0]);
  const bad = keys.map((path) => configWith(path, path.length % 2 === 0 ? "{accessLog: All}" : "[{a: b}]"));
  const wrong = bad.filter((text) => isProblems(parseConfig(text, file)));
  for (const text of wrong) {
    writeFileSync(file, text);
    // oxlint-disable-next-line no-await-in-loop -- reloads run one after another
    const { problems } = await reloads.now();
    assert.ok(problems.length > 0 && problems.every((line) => line.startsWith(`${file}:`)), problems.join());
    process.emit("SIGHUP", "SIGHUP");
  }
  writeFileSync(file, good);
  assert.equal(await reloads.now(), { problems: [], waiting: [] });
  reloads.stop();
  process.stdout.write(`\n    figure: ${wrong.length} bad files\n`);
  assert.ok(wrong.length > 150);
  assert.is(applied.filter((one) => one === undefined).length, 2 * wrong.length);
  assert.is(entries.filter(({ kind }) => kind === "config.refused").length, 2 * wrong.length);
  assert.not(entries.some(({ kind }) => kind === "internal.error"));
});

test.run();
