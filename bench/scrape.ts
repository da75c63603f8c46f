/**
 * node bench/scrape.ts [--watches 50000] [--times 10]
 *
 * Measures what a scrape, and each API request of the admin page, costs a proxy with 50,000 open watches. The cost is
 * the CPU time of the main thread, on which the event loop runs. This includes all other work on that thread meanwhile,
 * so it is the longest time for which the event loop can be blocked, unless other processes take the core. Ends with
 * `figure:` lines. The exit code is 1 if one of them is too high.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openWatches } from "./many-watches.ts";
import { countOthers, mainThreadMs, pinSelf, progress, sleep } from "./processes.ts";
import { median } from "./report.ts";
import { liveTools, requireTools } from "./tools.ts";

const mostMs = 50;
/** Longer than the proxy reuses the text of a scrape (adminLimits.scrapeReuseMs). */
const pauseMs = 1_200;
/**
 * Longer than the interval of each periodic check (watchLimits.hungLookMs, balanceLimits.balanceMs), so that each runs
 * at least once.
 */
const looksMs = 6_000;
const round = "no requests, for as long as one round of all periodic checks";
/** Maximum time, in ms, that a periodic check may take in one turn of the event loop. */
const mostLateMs = 10;

const { values } = parseArgs({
  options: {
    watches: { type: "string", default: "50000" },
    times: { type: "string", default: "10" },
    at: { type: "string", default: join(import.meta.dirname, "..") },
  },
});
const watches = Number(values.watches);

/** The requests to measure. Each query makes the proxy compute the response anew instead of reusing an earlier one. */
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

/**
 * `cpuMs`: CPU time of the main thread. `lateMs`: the longest delay of its event loop, as the proxy itself reports it.
 */
type Cost = { readonly cpuMs: number; readonly lateMs: number };

requireTools(liveTools);
pinSelf();
const proxy = await openWatches({ watches, at: values.at });
const { pid, apiUrl, metricsUrl } = proxy;

/** Returns the longest delay of the proxy's event loop since the last call. */
async function lateness(): Promise<number> {
  const answer = await fetch(`${apiUrl}/api/v1/stats`);
  return ((await answer.json()) as { readonly eventLoopDelayMs: number }).eventLoopDelayMs;
}

async function costOf(run: () => Promise<unknown>): Promise<Cost> {
  await lateness();
  const before = mainThreadMs(pid);
  await run();
  const cpuMs = mainThreadMs(pid) - before;
  // Waits, because the proxy samples the delay of its event loop every 20 ms.
  await sleep(50);
  return { cpuMs, lateMs: await lateness() };
}

async function look(path: string): Promise<void> {
  const answer = await fetch(`${path === "/metrics" ? metricsUrl : apiUrl}${path}`);
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  await answer.text();
}

const otherCores = countOthers();
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
const others = otherCores();
await proxy.stop();
let isMet = true;
const range = (all: readonly number[]): string =>
  `${median(all).toFixed(1)} ms (${Math.min(...all).toFixed(1)} to ${Math.max(...all).toFixed(1)})`;
for (const [name, all] of costs) {
  const cpu = all.map(({ cpuMs }) => cpuMs);
  const late = all.map(({ lateMs }) => lateMs);
  // The measurement `round` lasts six seconds, so its CPU time includes all kinds of work. For it, the longest delay is
  // judged instead.
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
