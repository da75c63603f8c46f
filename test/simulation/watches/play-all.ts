/** Plays many seeds and adds up their results. */
import { type Played, type PlayOptions, play } from "./scene.ts";

export type WatchSum = {
  runs: number;
  failed: number;
  virtualMs: number;
  decisions: number;
  readonly counts: Map<string, number>;
};

export function playAll(
  first: number,
  runs: number,
  failed: (played: Played) => void,
  options: PlayOptions = {},
): WatchSum {
  const sum: WatchSum = { runs: 0, failed: 0, virtualMs: 0, decisions: 0, counts: new Map() };
  for (let seed = first; seed < first + runs; seed += 1) {
    const played = play(seed, options);
    sum.runs += 1;
    sum.virtualMs += played.virtualMs;
    sum.decisions += played.decisions;
    for (const [what, count] of played.counts) sum.counts.set(what, (sum.counts.get(what) ?? 0) + count);
    if (played.problems.length === 0) continue;
    sum.failed += 1;
    failed(played);
  }
  return sum;
}

/** `wallMs` is the real duration of all runs. */
export function summaryOf(sum: WatchSum, wallMs: number): string {
  const hours = sum.virtualMs / 3_600_000;
  const counts = [...sum.counts].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return (
    `${sum.runs} seeds, ${sum.failed} failed; ${hours.toFixed(1)} virtual hours, ` +
    `${((hours / wallMs) * 60_000).toFixed(1)} of them a minute, ${sum.decisions} scheduling decisions\n` +
    counts.map(([what, count]) => `  ${what}: ${count}`).join("\n")
  );
}
