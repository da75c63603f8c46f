/** The table of results: what each row allows, what was measured, and whether the measurement is within the limits. */
import { isFailure } from "../load/asking.ts";
import { markdown } from "../rig/table.ts";
import type { Fate, Result } from "./play.ts";
import type { Row } from "./rows.ts";

export type Played = {
  readonly row: Row;
  readonly results: readonly Result[];
  readonly wrong: readonly string[];
  readonly late: readonly string[];
};

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
}

/** "510/780": median and worst value. "-" if there is no value; "3×" in front if only three runs have one. */
function spreadOf(values: readonly (number | undefined)[]): string {
  const there = values.filter((value) => value !== undefined);
  if (there.length === 0) return "-";
  const often = there.length === values.length ? "" : `${there.length}×`;
  return `${often}${Math.round(median(there))}/${Math.round(Math.max(...there))}`;
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}

/** "3 lived", or "2 of 5 ended 2100/2400" with the median and the worst time in milliseconds. */
function fateOf(fates: readonly Fate[]): string {
  const ended = fates.map(({ endedMs }) => endedMs).filter((ms) => ms !== undefined);
  if (fates.length === 0) return "-";
  return ended.length === 0
    ? `${fates.length} lived`
    : `${ended.length} of ${fates.length} ended ${spreadOf(ended)}`;
}

const heads = [
  "fault",
  "allowed",
  "suspect",
  "dead",
  "draining",
  "GET failed",
  "slowest",
  "LIST",
  "POST failed/doubled",
  "watch ends",
  "missing/doubled",
  "worst delay",
  "exec",
  "port-forward",
  "logs -f",
  "new client",
  "",
] as const;

/** Returns what the row allows, in a few words. */
function allowed({ targets }: Row): string {
  const { suspect, dead, draining, never, get, tunnels, logs, elsewhere } = targets;
  const bound = (what: string, most: number | undefined): string[] =>
    most === undefined ? [] : [`${what} ≤ ${most}`];
  return [
    ...(suspect === undefined ? [] : [`suspect ≤ ${suspect.median}/${suspect.most}`]),
    ...bound("dead", dead),
    ...bound("draining", draining),
    ...never.map((what) => `never ${what}`),
    ...bound("GET", get),
    typeof tunnels === "number"
      ? `tunnels ≤ ${tunnels}`
      : { live: "tunnels live", own: "tunnels its own" }[tunnels],
    ...bound("logs", logs),
    ...bound("new client", elsewhere),
  ].join(", ");
}

function cells({ row, results, wrong, late }: Played): string[] {
  const gets = results.flatMap((result) => result.gets);
  const lists = results.flatMap((result) => result.lists).filter(({ isOnVictim }) => isOnVictim);
  const watches = results.flatMap((result) => result.watches);
  const ends = watches.flatMap((watch) => watch.ends);
  const clean = ends.filter(({ how }) => how === "clean").length;
  const fates = (kind: Fate["kind"]): string =>
    fateOf(results.flatMap(({ tunnels }) => tunnels.filter((one) => one.kind === kind && one.isOnVictim)));
  const posts = results.map((result) => result.posts);
  return [
    row.name,
    allowed(row),
    spreadOf(results.map(({ suspect }) => suspect)),
    spreadOf(results.map(({ dead }) => dead)),
    spreadOf(results.map(({ draining }) => draining)),
    `${gets.filter((heard) => isFailure(heard)).length}/${gets.length}`,
    `${Math.max(...gets.map(({ headMs }) => headMs))}`,
    [...new Set(lists.map(({ end }) => end))]
      .map((end) => `${lists.filter((one) => one.end === end).length} ${end}`)
      .join(", "),
    `${sum(posts, ({ failed }) => failed.length)}/${sum(posts, ({ doubled }) => doubled)} of ${sum(posts, ({ sent }) => sent)}`,
    `${clean} clean, ${ends.length - clean} other`,
    `${sum(watches, ({ difference }) => difference.missing)}/${sum(watches, ({ difference }) => difference.doubled)}`,
    `${Math.max(...watches.map(({ difference }) => difference.worstMs))}`,
    fates("exec"),
    fates("port-forward"),
    fates("logs"),
    `${Math.max(...results.map(({ lastOnVictim }) => lastOnVictim))}`,
    wrong.length + late.length === 0 ? "pass" : `FAIL (${wrong.length + late.length})`,
  ];
}

/** Times are milliseconds from the fault, as median/worst. After the table, one line for each miss. */
export function table(played: readonly Played[]): string {
  const missed = played.flatMap(({ row, wrong, late }) =>
    [...wrong, ...late].map((miss) => `${row.name}: ${miss}`),
  );
  return [markdown(heads, played.map(cells)), "", ...missed].join("\n");
}
