import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../../src/base/clock.ts";
import type { Failure } from "../../../../src/base/failure.ts";
import { type Entry, Journal } from "../../../../src/events/journal.ts";
import { Reloads } from "../../../../src/ops/cli/serve/reloads.ts";
import type { Config } from "../../../../src/ops/config/config.ts";
import { startProxy, type TestProxy } from "../../../support/proxy.ts";
import { within } from "../../../support/within.ts";

const test = suite<{ proxy: TestProxy }>("cli/reloads");

const directory = mkdtempSync(join(tmpdir(), "watchkeeper-reloads-"));
const stops: (() => void)[] = [];
test.before(async (context) => {
  context.proxy = await startProxy();
});
test.after.each(() => {
  for (const stop of stops.splice(0)) stop();
});
test.after(async ({ proxy }) => {
  rmSync(directory, { recursive: true });
  await proxy.stop();
});

const good = `apiVersion: watchkeeper.dev/v1alpha2
kind: WatchkeeperConfiguration
listeners: [{name: local, address: "127.0.0.1:0"}]
clusters: [{name: default, backends: [{name: a, url: "http://127.0.0.1:1"}]}]
`;

/** Starts the reloads of a proxy that records each configuration that it gets, and answers with `outcome`. */
function start({ running }: TestProxy, outcome: () => Promise<readonly string[] | Failure>) {
  const file = join(directory, "watchkeeper.yaml");
  writeFileSync(file, good);
  const journal = new Journal(wallClock);
  const entries: Entry[] = [];
  journal.subscribe((entry) => entries.push(entry));
  const taken: (Config | undefined)[] = [];
  const reloads = new Reloads(file, journal);
  stops.push(() => reloads.stop());
  const reload = (loaded: Config | undefined): Promise<readonly string[] | Failure> => {
    taken.push(loaded);
    return outcome();
  };
  const apply = (): void => reloads.apply(Object.assign(Object.create(running), { reload }));
  return { file, reloads, entries, taken, apply };
}

async function until(what: string, isSo: () => boolean): Promise<void> {
  const look = async (): Promise<void> => {
    while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 10));
  };
  await within(20_000, what, look());
}

test("the caller of a reload gets its result", async ({ proxy }) => {
  const { file, reloads, apply } = start(proxy, () => Promise.resolve(["health"]));
  apply();
  assert.equal(await within(20_000, "the reload", reloads.now()), { problems: [], waiting: ["health"] });
  writeFileSync(file, "apiVersion: nonsense\n");
  const { problems, waiting } = await within(20_000, "the refusal", reloads.now());
  assert.match(problems.join("; "), "apiVersion");
  assert.equal(waiting, []);
});

const hangUp = (): boolean => process.emit("SIGHUP");

test("what came before there was a proxy is taken by it", async ({ proxy }) => {
  const { taken, apply, entries } = start(proxy, () => Promise.resolve(["health"]));
  hangUp();
  assert.is(taken.length, 0);
  apply();
  await until("the reload", () => entries.length === 1);
  assert.is(taken.length, 1);
  assert.equal(entries[0]?.kind === "config.reloaded" ? entries[0].waiting : undefined, ["health"]);
});

test("a fault of the proxy is that file's refusal, and the next one is taken", async ({ proxy }) => {
  const outcomes = [() => Promise.reject(new Error("bug")), () => Promise.resolve([])];
  const { apply, entries } = start(proxy, () => outcomes.shift()?.() ?? Promise.resolve([]));
  apply();
  hangUp();
  hangUp();
  await until("both", () => entries.length === 2);
  assert.equal(
    entries.map((entry) => (entry.kind === "config.refused" ? entry.problems : entry.kind)),
    [["bug"], "config.reloaded"],
  );
});

test("while it is frozen nothing changes, and what came is taken after that", async ({ proxy }) => {
  const { reloads, apply, taken } = start(proxy, () => Promise.resolve([]));
  apply();
  const thaw = await reloads.freeze();
  hangUp();
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.is(taken.length, 0);
  thaw();
  await until("the reload", () => taken.length === 1);
});

test("once stopped it reacts to nothing", async ({ proxy }) => {
  const { reloads, apply, taken, file } = start(proxy, () => Promise.resolve([]));
  apply();
  reloads.stop();
  assert.is(hangUp(), false);
  writeFileSync(file, `${good}# changed\n`);
  await new Promise((resolve) => setTimeout(resolve, 1300));
  assert.is(taken.length, 0);
});

test.run();
