/**
 * node bench/page.ts [--watches 50000] [--seconds 40]
 *
 * Opens the admin page in Chromium in front of a proxy with 50,000 open watches, and measures the first paint, the
 * longest pause between two frames, and how late the proxy's event loop is with and without the page. Ends with
 * `figure:` lines. The exit code is 1 if one of them is too high.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { chromium, type Page } from "playwright-core";
import { openWatches } from "./many-watches.ts";
import { machineMs, ownMs, progress, sleep } from "./processes.ts";
import { median } from "./report.ts";
import { liveTools, requireTools } from "./tools.ts";

const mostPaintMs = 1_000;
const mostFrameMs = 50;
/** Maximum by which the page may add to the delay of the proxy's event loop. */
const mostAddedMs = 5;
const stepMs = 5_000;

const { values } = parseArgs({
  options: { watches: { type: "string", default: "50000" }, seconds: { type: "string", default: "40" } },
});
const watchMs = Number(values.seconds) * 1_000;

requireTools(liveTools);
const proxy = await openWatches({ watches: Number(values.watches), at: join(import.meta.dirname, "..") });
const other = { at: performance.now(), ms: machineMs() - ownMs() };

/** Returns the longest delay of the proxy's event loop in each of the last steps. */
async function delays(steps: number): Promise<readonly number[]> {
  const answer = await fetch(`${proxy.apiUrl}/api/v1/history`);
  const { process } = (await answer.json()) as { process: { eventLoopDelayMs: (number | null)[] } };
  return process.eventLoopDelayMs.slice(-steps).map((value) => value ?? 0);
}

/** Returns the times between two frames that took longer than a frame should, in milliseconds. */
async function framesOf(page: Page): Promise<readonly number[]> {
  const script = `new Promise((resolve) => {
    const late = [];
    const from = performance.now();
    let last = from;
    const frame = (now) => {
      if (now - last > 20) late.push(now - last);
      last = now;
      if (now - from < ${watchMs}) requestAnimationFrame(frame);
      else resolve(late);
    };
    requestAnimationFrame(frame);
  })`;
  return page.evaluate<number[]>(script);
}

const steps = Math.floor(watchMs / stepMs) - 1;
progress("without the page\n");
await sleep(watchMs);
const without = await delays(steps);
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
const missed: string[] = [];
function figure(name: string, value: number, most: number): void {
  if (value > most) missed.push(name);
  process.stdout.write(
    `figure: ${value > most ? "✗" : "✓"} ${name}: ${value.toFixed(1)} ms (at most ${most})\n`,
  );
}
const largest = (all: readonly number[]): number => Math.max(0, ...all);
for (const view of ["#/", "#/watches?group=client", "#/watches?q=pods"]) {
  progress(`${view}\n`);
  await page.goto("about:blank");
  await page.goto(`${proxy.apiUrl}/${view}`);
  const paint = await page.evaluate<number>(
    "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 1e9",
  );
  await page.locator("main section").first().waitFor();
  const frames = await framesOf(page);
  const late = await delays(steps);
  figure(`${view} first contentful paint`, paint, mostPaintMs);
  figure(`${view} longest time between frames in ${values.seconds} s`, largest(frames), mostFrameMs);
  figure(
    `${view} event loop late, median of the longest in each 5 s, beyond that without the page`,
    median(late) - median(without),
    mostAddedMs,
  );
  process.stdout.write(
    `figure: event loop late in each 5 s: ${late.join(" ")}; without the page ${without.join(" ")}\n`,
  );
}
const others = (machineMs() - ownMs() - other.ms) / (performance.now() - other.at);
process.stdout.write(
  `figure: ${values.watches} watches; other processes, the browser included, used ${others.toFixed(1)} cores\n`,
);
await browser.close();
await proxy.stop();
process.exit(missed.length === 0 ? 0 : 1);
