/** Plays many seeds and adds up their results. */
import { type Figures, play } from "./scene.ts";

export type Sum = {
  runs: number;
  failed: number;
  requests: number;
  watches: number;
  events: number;
  decisions: number;
  frames: number;
  bytes: number;
  astray: number;
  queuedBytes: number;
  readonly outcomes: Record<string, number>;
};

export type Told = {
  readonly failed: (figures: Figures) => void;
  readonly trace?: ((line: string) => void) | undefined;
};

export function playAll(first: number, runs: number, told: Told): Sum {
  const sum: Sum = {
    runs: 0,
    failed: 0,
    requests: 0,
    watches: 0,
    events: 0,
    decisions: 0,
    frames: 0,
    bytes: 0,
    astray: 0,
    queuedBytes: 0,
    outcomes: {},
  };
  for (let seed = first; seed < first + runs; seed += 1) {
    const figures = play(seed, told.trace);
    if (figures.problems.length > 0) told.failed(figures);
    add(sum, figures);
  }
  return sum;
}

function add(sum: Sum, figures: Figures): void {
  sum.runs += 1;
  if (figures.problems.length > 0) sum.failed += 1;
  for (const key of ["requests", "watches", "events", "decisions", "frames", "bytes", "astray"] as const)
    sum[key] += figures[key];
  sum.queuedBytes = Math.max(sum.queuedBytes, figures.queuedBytes);
  for (const [outcome, count] of Object.entries(figures.outcomes))
    sum.outcomes[outcome] = (sum.outcomes[outcome] ?? 0) + count;
}

export function summaryOf(sum: Sum): string {
  const outcomes = Object.entries(sum.outcomes).map(([outcome, count]) => `${count} ${outcome}`);
  return (
    `${sum.runs} seeds, ${sum.failed} failed, ${sum.astray} bytes astray; ${sum.requests} requests and ` +
    `${sum.watches} watches (${outcomes.join(", ")}), ${sum.events} events, ${sum.frames} frames, ` +
    `${sum.decisions} scheduling decisions, ${Math.round(sum.bytes / 1e6)} MB, at most ${Math.round(sum.queuedBytes / 1024)} KiB queued in the proxy`
  );
}
