/**
 * Measures the work of a page's main thread in each frame, from a Chromium trace. The trace has the CPU time of each
 * task. Other load on the machine hardly changes this time, but it changes the time between two frames. On an idle
 * machine both are about the same.
 */
import type { Browser, Page } from "playwright-core";

/**
 * A frame, or a task of the page's main thread. `atMs` is its start in ms since the navigation. `ms` is the duration of
 * a task, or the time from a frame until the next one. `cpuMs` is the CPU time of the page's main thread in it.
 */
export type Span = { readonly atMs: number; readonly ms: number; readonly cpuMs: number };

type PageTrace = {
  /** When the page first showed text. Chromium reports it after the frame, so it can be missing when `load` fires. */
  readonly paintMs: number;
  /** When the largest text or picture was first rendered. */
  readonly largestMs: number;
  /** All frames since the first paint. */
  readonly frames: readonly Span[];
  /** All tasks since the first paint. A frame has several: those of scripts, and one of style, layout and paint. */
  readonly tasks: readonly Span[];
  /** CPU time in ms of the threads in which Chromium rasterizes without a GPU. */
  readonly rasterMs: number;
};

type Recorded = { readonly paintMs: number; readonly largestMs: number; readonly frames: readonly number[] };

/** Name of the mark that relates the clock of the page to that of the trace. */
const originMark = "page-trace-origin";

/** Runs in each page before its own scripts, so that the first frames are recorded. */
const recorder = `{
  const recorded = { paintMs: 1e9, largestMs: 1e9, frames: [] };
  window.pageTrace = recorded;
  const observe = (type, take) =>
    new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({ type, buffered: true });
  observe("paint", ({ name, startTime }) => {
    if (name === "first-contentful-paint") recorded.paintMs = startTime;
  });
  observe("largest-contentful-paint", ({ startTime }) => void (recorded.largestMs = startTime));
  const frame = (now) => {
    if (recorded.frames.length === 0) performance.mark("${originMark}");
    recorded.frames.push(now);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}`;

/** Prepares a page. Call before its first navigation. */
export function recordFrames(page: Page): Promise<unknown> {
  return page.addInitScript({ content: recorder });
}

/** Traces the page while `use` runs. `use` must navigate exactly once. */
export async function traced(browser: Browser, page: Page, use: () => Promise<unknown>): Promise<PageTrace> {
  const categories = ["-*", "__metadata", "toplevel", "blink.user_timing", "cc"];
  await browser.startTracing(page, { categories });
  await use();
  const recorded = await page.evaluate<Recorded>("window.pageTrace");
  const trace = await browser.stopTracing();
  return traceOf(JSON.parse(trace.toString()).traceEvents, recorded);
}

/** An event of a trace: https://chromium.googlesource.com/catapult. Times are in µs; `tdur` is CPU time. */
type TraceEvent = {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur?: number;
  readonly tdur?: number;
  readonly args?: { readonly name?: string; readonly data?: { readonly startTime?: number } };
};

/** @throws {Error} the trace lacks the mark of the page, so its tasks cannot be assigned to frames */
function traceOf(events: readonly TraceEvent[], { paintMs, largestMs, frames }: Recorded): PageTrace {
  const origin = events.find(({ name }) => name === originMark);
  const startTime = origin?.args?.data?.startTime;
  if (origin === undefined || startTime === undefined) throw new Error(`The trace has no mark ${originMark}`);
  const beganUs = origin.ts - startTime * 1_000;
  const tasks = outermost(events.filter(({ pid, tid }) => pid === origin.pid && tid === origin.tid)).map(
    ({ ts, dur = 0, tdur = 0 }) => ({ atMs: (ts - beganUs) / 1_000, ms: dur / 1_000, cpuMs: tdur / 1_000 }),
  );
  const cpuBetween = (from: number, to: number): number =>
    tasks.reduce((sum, { atMs, ms, cpuMs }) => {
      const shared = Math.min(atMs + ms, to) - Math.max(atMs, from);
      return shared <= 0 ? sum : sum + cpuMs * (shared / ms);
    }, 0);
  return {
    paintMs,
    largestMs,
    rasterMs: events.reduce((sum, { name, tdur = 0 }) => sum + (name === "RasterTask" ? tdur / 1_000 : 0), 0),
    tasks: tasks.filter(({ atMs }) => atMs >= paintMs),
    frames: frames.slice(1).flatMap((to, before) => {
      const from = frames[before] ?? to;
      return from < paintMs ? [] : [{ atMs: from, ms: to - from, cpuMs: cpuBetween(from, to) }];
    }),
  };
}

/** Returns the tasks of a thread without the tasks within them, whose time they contain. */
function outermost(events: readonly TraceEvent[]): readonly TraceEvent[] {
  let end = 0;
  return events
    .filter(({ ph, dur = 0 }) => ph === "X" && dur > 0)
    .toSorted((a, b) => a.ts - b.ts || (b.dur ?? 0) - (a.dur ?? 0))
    .filter(({ ts, dur = 0 }) => {
      const isOutermost = ts >= end;
      if (isOutermost) end = ts + dur;
      return isOutermost;
    });
}
