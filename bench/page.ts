/**
 * node bench/page.ts [--watches 50000] [--seconds 40]
 *
 * Opens the admin page in Chromium in front of a proxy with 50,000 open watches, and measures the first and the largest
 * paint, the longest time between two frames and the longest task since the first paint, and how late the proxy's event
 * loop is with and without the page. Ends with `figure:` lines. The exit code is 1 if one of them is too high.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";
import { openWatches } from "./many-watches.ts";
import { machineMs, ownMs, pinSelf, progress, sleep } from "./processes.ts";
import { median } from "./report.ts";
import { liveTools, requireTools } from "./tools.ts";

const mostPaintMs = 1_000;
const mostFrameMs = 50;
/** Maximum by which the page may add to the delay of the proxy's event loop. */
const mostAddedMs = 5;
const stepMs = 5_000;
/** Collections of the garbage that opening the watches left delay the loop for some seconds. */
const calmMs = 20_000;

const { values } = parseArgs({
  options: { watches: { type: "string", default: "50000" }, seconds: { type: "string", default: "40" } },
});
const watchMs = Number(values.seconds) * 1_000;

requireTools(liveTools);
// The browser would otherwise take the core of the proxy, which then is late because of that.
pinSelf();
const proxy = await openWatches({ watches: Number(values.watches), at: join(import.meta.dirname, "..") });
const other = { at: performance.now(), ms: machineMs() - ownMs() };

/** Returns the longest delay of the proxy's event loop in each of the last steps. */
async function delays(steps: number): Promise<readonly number[]> {
  const answer = await fetch(`${proxy.apiUrl}/api/v1/history`);
  const { process } = (await answer.json()) as { process: { eventLoopDelayMs: (number | null)[] } };
  return process.eventLoopDelayMs.slice(-steps).map((value) => value ?? 0);
}

/** A time of a page, in ms since its navigation. */
type Span = { readonly at: number; readonly ms: number };

type PageFigures = {
  /** When the page first showed text. Chromium reports it after the frame, so it can be missing when `load` fires. */
  readonly paintMs: number;
  /** When the largest text or picture was first shown. */
  readonly largestMs: number;
  /** Times between two frames that are longer than a frame of 60 Hz. */
  readonly frames: readonly Span[];
  /** Tasks of the page's main thread that take 50 ms or more; Chromium reports no shorter ones. */
  readonly tasks: readonly Span[];
};

/** Runs in each page before its own scripts, so that the first frames are recorded. */
const recorder = `{
  const figures = { paintMs: 1e9, largestMs: 1e9, frames: [], tasks: [] };
  window.pageFigures = figures;
  const observe = (type, take) =>
    new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({ type, buffered: true });
  observe("paint", ({ name, startTime }) => {
    if (name === "first-contentful-paint") figures.paintMs = startTime;
  });
  observe("largest-contentful-paint", ({ startTime }) => void (figures.largestMs = startTime));
  observe("longtask", ({ startTime, duration }) => void figures.tasks.push({ at: startTime, ms: duration }));
  let last;
  const frame = (now) => {
    if (last !== undefined && now - last > 20) figures.frames.push({ at: last, ms: Math.round(now - last) });
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}`;

const steps = Math.floor(watchMs / stepMs) - 1;
progress("without the page\n");
await sleep(calmMs + watchMs);
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
/** The time before the first paint counts as paint, and not as a frame. */
const longest = (all: readonly Span[], { paintMs }: PageFigures): number =>
  Math.max(0, ...all.filter(({ at }) => at >= paintMs).map(({ ms }) => ms));
await page.addInitScript({ content: recorder });
for (const view of ["#/", "#/watches?group=client", "#/watches?q=pods"]) {
  progress(`${view}\n`);
  await page.goto("about:blank");
  await page.goto(`${proxy.apiUrl}/${view}`);
  await page
    .locator(view.includes("watches") ? "main tbody tr" : "main svg")
    .first()
    .waitFor();
  await sleep(watchMs);
  const seen = await page.evaluate<PageFigures>("window.pageFigures");
  const late = await delays(steps);
  figure(`${view} first contentful paint`, seen.paintMs, mostPaintMs);
  figure(`${view} largest contentful paint`, seen.largestMs, mostPaintMs);
  figure(
    `${view} longest time between frames in ${values.seconds} s`,
    longest(seen.frames, seen),
    mostFrameMs,
  );
  figure(`${view} longest task`, longest(seen.tasks, seen), mostFrameMs);
  const slow = seen.frames.filter(({ ms }) => ms > mostFrameMs);
  process.stdout.write(
    `figure: times between frames above ${mostFrameMs} ms, as ms@ms since the navigation: ${slow.map(({ at, ms }) => `${ms.toFixed(0)}@${at.toFixed(0)}`).join(" ") || "none"}\n`,
  );
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
  `figure: ${values.watches} watches; processes that are not part of this benchmark used ${others.toFixed(1)} cores\n`,
);
await browser.close();
await proxy.stop();
process.exit(missed.length === 0 ? 0 : 1);
