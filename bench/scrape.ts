/**
 * node bench/scrape.ts [--watches 50000] [--times 10]
 *
 * Measures what a scrape, and each API request of the admin page, costs a proxy with 50,000 open watches: the CPU time
 * of its main thread, on which the event loop runs. Everything else that happens on that thread meanwhile is included,
 * so the loop is blocked for that long at most, unless other processes take the core. Ends with `figure:` lines. The
 * exit code is 1 if one of them is too high.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openWatches } from "./many-watches.ts";
import { machineMs, mainThreadMs, ownMs, pinSelf, progress, sleep } from "./processes.ts";
import { median } from "./report.ts";
import { liveTools, requireTools } from "./tools.ts";

const mostMs = 50;
/** Longer than a scrape's text is used again (adminLimits.scrapeReuseMs). */
const pauseMs = 1_200;
/** Longer than the pauses between all periodic looks (watchLimits.hungLookMs, balanceLimits.balanceMs). */
const looksMs = 6_000;
const round = "no requests, for as long as one round of all periodic checks";
/** No periodic look takes more of one loop turn. */
const mostLateMs = 10;

const { values } = parseArgs({
  options: {
    watches: { type: "string", default: "50000" },
    times: { type: "string", default: "10" },
    at: { type: "string", default: join(import.meta.dirname, "..") },
  },
});
const watches = Number(values.watches);

/** The path, and what stands in the way of its being answered from what was there before. */
const looks = [
  "/metrics",
  "/api/v1/watches?limit=20",
  "/api/v1/watches?limit=500&sort=-idleMs",
  "/api/v1/watches?limit=20&q=no-such-watch",
  "/api/v1/backends",
  "/api/v1/history",
  "/api/v1/clients?limit=20",
  "/api/v1/leases?limit=20",
  "/api/v1/incidents",
  "/api/v1/stats",
] as const;

/** `cpuMs` of the main thread; `lateMs`: how late its loop was at worst, by its own figure. */
type Cost = { readonly cpuMs: number; readonly lateMs: number };

requireTools(liveTools);
pinSelf();
const proxy = await openWatches({ watches, at: values.at });
const { pid, apiUrl, metricsUrl } = proxy;

/** Since it was asked last. */
async function lateness(): Promise<number> {
  const answer = await fetch(`${apiUrl}/api/v1/stats`);
  return ((await answer.json()) as { readonly eventLoopDelayMs: number }).eventLoopDelayMs;
}

async function costOf(run: () => Promise<unknown>): Promise<Cost> {
  await lateness();
  const before = mainThreadMs(pid);
  await run();
  const cpuMs = mainThreadMs(pid) - before;
  // Its loop is looked at every 20 ms.
  await sleep(50);
  return { cpuMs, lateMs: await lateness() };
}

async function look(path: string): Promise<void> {
  const answer = await fetch(`${path === "/metrics" ? metricsUrl : apiUrl}${path}`);
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  await answer.text();
}

const other = { at: performance.now(), ms: machineMs() - ownMs() };
const costs = new Map<string, Cost[]>();
for (let time = 0; time < Number(values.times); time += 1) {
  const record = async (name: string, run: () => Promise<unknown>): Promise<void> => {
    costs.set(name, [...(costs.get(name) ?? []), await costOf(run)]);
  };
  await record("no requests, for a tenth of a second", () => sleep(100));
  await record(round, () => sleep(looksMs));
  for (const path of looks) await record(path, () => look(path));
  progress(".");
  await sleep(pauseMs);
}
progress("\n");
const others = (machineMs() - ownMs() - other.ms) / (performance.now() - other.at);
await proxy.stop();
let isMet = true;
const range = (all: readonly number[]): string =>
  `${median(all).toFixed(1)} ms (${Math.min(...all).toFixed(1)} to ${Math.max(...all).toFixed(1)})`;
for (const [name, all] of costs) {
  const cpu = all.map(({ cpuMs }) => cpuMs);
  const late = all.map(({ lateMs }) => lateMs);
  // Six seconds have CPU time of all kinds in them: there the longest turn counts.
  const isIn = name === round ? median(late) <= mostLateMs : median(cpu) <= mostMs;
  if (!isIn) isMet = false;
  process.stdout.write(
    `figure: ${isIn ? "✓" : "✗"} ${name}: CPU ${range(cpu)}, loop late by ${range(late)}\n`,
  );
}
process.stdout.write(
  `figure: ${watches} watches, at most ${mostMs} ms of CPU; others used ${others.toFixed(1)} cores meanwhile\n`,
);
process.exit(isMet ? 0 : 1);
