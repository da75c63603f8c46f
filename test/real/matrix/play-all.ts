/** Runs rows of the matrix. Each run of each row has a seed of its own, which is printed with the run's misses. */
import { seeded } from "../../support/random.ts";
import { Stage } from "../load/stage.ts";
import { misses } from "./judge.ts";
import { play, type Result } from "./play.ts";
import { type Row, rows } from "./rows.ts";
import { median, type Played } from "./table.ts";

export type Plan = {
  readonly seed: number;
  /** Number of runs of each row. */
  readonly runs: number;
  /** Rows whose name contains one of these words are run; all rows if there is none. */
  readonly words: readonly string[];
  /** Factor for the row's time limits. Default: 1. */
  readonly patience?: number;
};

/** Factor for time limits on CI's shared machine. `npm run test:matrix` uses the limits themselves. */
const patienceInShort = 3;

export function rowsOf(words: readonly string[]): readonly Row[] {
  return rows.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));
}

/** All rows use one cluster, because an apiserver takes seconds to start. The proxy starts quickly. */
export async function playAll(plan: Plan, tell: (line: string) => void): Promise<Played[]> {
  const stage = await Stage.start();
  const played: Played[] = [];
  try {
    for (const row of rowsOf(plan.words)) played.push(await playRow(stage, row, plan, tell));
  } finally {
    await stage.stop();
  }
  return played;
}

export async function playRow(
  stage: Stage,
  row: Row,
  { seed, runs, patience = 1 }: Plan,
  tell: (line: string) => void,
): Promise<Played> {
  const results: Result[] = [];
  const wrong: string[] = [];
  const late: string[] = [];
  for (let run = 0; run < runs; run++) {
    const result = await play(stage, row, `m${seed + run}-${Date.now()}`, seeded(seed + run));
    results.push(result);
    const now = misses(row, result, patience);
    const named = (miss: string): string => `${miss} (seed ${seed + run})`;
    wrong.push(...now.wrong.map((miss) => named(miss)));
    late.push(...now.late.map((miss) => named(miss)));
    tell(`${row.name}, seed ${seed + run}: ${[...now.wrong, ...now.late].join("; ") || "pass"}`);
  }
  const target = patience === 1 ? row.targets.suspect?.median : undefined;
  const middle = median(results.map(({ suspect }) => suspect ?? Infinity));
  if (target !== undefined && middle > target)
    late.push(`suspect after ${middle} ms in the median, not ${target}`);
  return { row, results, wrong, late };
}

/**
 * Runs a row once. If only time limits were missed, runs it twice more, and both of these runs must be within the
 * limits: on a machine that pauses for a second, the times of a single run prove nothing. What must never happen fails
 * the row at once.
 */
export async function playShort(stage: Stage, row: Row, seed: number): Promise<Played> {
  const tell = (line: string): void => console.log(`figure: ${line}`);
  const plan = { words: [], patience: patienceInShort };
  const first = await playRow(stage, row, { ...plan, seed, runs: 1 }, tell);
  if (first.wrong.length > 0 || first.late.length === 0) return first;
  const again = await playRow(stage, row, { ...plan, seed: seed + 1, runs: 2 }, tell);
  return { ...again, results: [...first.results, ...again.results] };
}
