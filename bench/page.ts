/**
 * node bench/page.ts [--watches 50000] [--seconds 40]
 *
 * Opens the admin page in Chromium in front of a proxy with 50,000 open watches. Ends with `figure:` lines. The exit
 * code is 1 if one of them is too high. Measures:
 * - the first and the largest paint
 * - the longest time between two frames, compared with that of a page without content
 * - the most CPU time that the page uses in a task and in a frame
 * - the delay of the proxy's event loop with and without the page
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";
import { recordFrames, type Span, traced } from "../test/support/page-trace.ts";
import { openWatches } from "./many-watches.ts";
import { countOthers, pinSelf, progress, sleep } from "./processes.ts";
import { median } from "./report.ts";
import { liveTools, requireTools } from "./tools.ts";

const mostPaintMs = 1_000;
const mostFrameMs = 50;
/** Maximum, in ms, by which the page may add to the longest delay of the proxy's event loop. */
const mostAddedMs = 5;
const stepMs = 5_000;
/**
 * Wait, in ms, before the measurement. Opening the watches leaves garbage, and collecting it delays the event loop for
 * some seconds.
 */
const calmMs = 20_000;

const { values } = parseArgs({
  options: { watches: { type: "string", default: "50000" }, seconds: { type: "string", default: "40" } },
});
const watchMs = Number(values.seconds) * 1_000;

requireTools(liveTools);
// Keeps the browser off the proxy's core, because it would delay the proxy there.
pinSelf();
const proxy = await openWatches({ watches: Number(values.watches), at: join(import.meta.dirname, "..") });
const otherCores = countOthers();

/** Returns the longest delay of the proxy's event loop in each of the last `steps` steps of the history. */
async function delays(steps: number): Promise<readonly number[]> {
  const answer = await fetch(`${proxy.apiUrl}/api/v1/history`);
  const { process } = (await answer.json()) as { process: { eventLoopDelayMs: (number | null)[] } };
  return process.eventLoopDelayMs.slice(-steps).map((value) => value ?? 0);
}

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
const longest = (all: readonly Span[], of: "ms" | "cpuMs"): number =>
  Math.max(0, ...all.map((one) => one[of]));

/**
 * Returns the longest time, in ms, between two frames of a page without content. The machine alone causes this time,
 * and not the admin page.
 */
async function emptyMs(): Promise<number> {
  const empty = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await recordFrames(empty);
  // The page needs some content, here a letter: without a first paint, a page shows no frames.
  const { frames } = await traced(browser, empty, async () => {
    await empty.goto("data:text/html,x");
    await sleep(watchMs);
  });
  await empty.close();
  return longest(frames, "ms");
}

progress("a page without content\n");
const floorMs = await emptyMs();
process.stdout.write(
  `figure: longest time between frames of a page without content: ${floorMs.toFixed(0)} ms\n`,
);
await recordFrames(page);
for (const view of ["#/", "#/watches?group=client", "#/watches?q=pods"]) {
  progress(`${view}\n`);
  await page.goto("about:blank");
  const seen = await traced(browser, page, async () => {
    await page.goto(`${proxy.apiUrl}/${view}`);
    await page
      .locator(view.includes("watches") ? "main tbody tr" : "main svg")
      .first()
      .waitFor();
    await sleep(watchMs);
  });
  const late = await delays(steps);
  figure(`${view} first contentful paint`, seen.paintMs, mostPaintMs);
  figure(`${view} largest contentful paint`, seen.largestMs, mostPaintMs);
  figure(`${view} CPU time of the page's longest task`, longest(seen.tasks, "cpuMs"), mostFrameMs);
  figure(`${view} most CPU time of the page in a frame`, longest(seen.frames, "cpuMs"), mostFrameMs);
  figure(
    `${view} longest time between frames in ${values.seconds} s`,
    longest(seen.frames, "ms"),
    Math.max(mostFrameMs, floorMs),
  );
  const slow = seen.frames.filter(({ ms }) => ms > mostFrameMs);
  process.stdout.write(
    `figure: times between frames above ${mostFrameMs} ms, as ms@ms since the navigation, with the CPU time of the page in them: ${slow.map(({ ms, atMs, cpuMs }) => `${ms.toFixed(0)}@${atMs.toFixed(0)} (${cpuMs.toFixed(0)})`).join(" ") || "none"}\n`,
  );
  const pageMs = seen.tasks.reduce((sum, { cpuMs }) => sum + cpuMs, 0);
  process.stdout.write(
    `figure: CPU time in ${values.seconds} s: the page ${pageMs.toFixed(0)} ms, drawing without a GPU ${seen.rasterMs.toFixed(0)} ms\n`,
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
const others = otherCores();
process.stdout.write(
  `figure: ${values.watches} watches; processes that are not part of this benchmark used ${others.toFixed(1)} cores\n`,
);
await browser.close();
await proxy.stop();
process.exit(missed.length === 0 ? 0 : 1);
