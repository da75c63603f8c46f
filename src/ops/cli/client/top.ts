/**
 * `watchkeeper top [watches|clients]`: prints rates, which it computes from the difference between two reads of the
 * API.
 */

import { Failure } from "../../../base/failure.ts";
import { adminLimits } from "../../admin/http/limits.ts";
import type { Given } from "../commands/options.ts";
import { numberAt, type Row, rowOf, shown, textAt } from "../commands/rows.ts";
import { json, type Screen } from "../commands/screen.ts";
import { type AdminClient, apiCommand } from "./admin-client.ts";
import { views } from "./columns.ts";
import { tableOf } from "./table.ts";
import { age, rate } from "./words.ts";

/** For each list: the counter, the heading of its rate, and the fields that identify a row. */
const subjects = {
  clients: {
    count: "requests",
    per: "REQUESTS/S",
    key: ["cluster", "client", "agent", "subject", "subjectSource", "pod"],
  },
  watches: { count: "events", per: "EVENTS/S", key: ["auditId"] },
} as const;

type TopOptions = {
  readonly subject: keyof typeof subjects;
  readonly everyMs: number;
  readonly rows: number;
  readonly isJson: boolean;
  readonly isOnce: boolean;
};

/** One read of the API: the rows with the highest counters, and the counters of the whole proxy. */
type Reading = { readonly rows: readonly Row[]; readonly figures: Row };

/**
 * Prints a table every few seconds until a signal, or only once. Exit codes: 0 printed once, 2 usage error, 3 the API
 * is unreachable.
 */
export const top = apiCommand("top", async ({ options: given, client, screen, clock }) => {
  const options = optionsIn(given, screen);
  if (options instanceof Failure) return options;
  let before = await look(client, options);
  for (;;) {
    if (before instanceof Failure) return before;
    await new Promise<void>((resolve) => {
      clock.after(options.everyMs, resolve);
    });
    const now = await look(client, options);
    if (now instanceof Failure) return now;
    show(before, now, options, screen);
    if (options.isOnce) return 0;
    before = now;
  }
});

function optionsIn(given: Given, screen: Screen): TopOptions | Failure {
  const seconds = given.whole("interval", 2, [1, 60]);
  const rows = given.whole("rows", 20, [1, adminLimits.apiPageMost]);
  if (seconds instanceof Failure) return seconds;
  if (rows instanceof Failure) return rows;
  return {
    subject: given.words[0] === "watches" ? "watches" : "clients",
    everyMs: seconds * 1000,
    rows,
    isJson: given.text("output") === "json",
    // For a file or a pipe, prints only one measurement, because a file must not grow without limit.
    isOnce: given.has("once") || screen.lines === 0,
  };
}

/** Reads only the rows with the highest counters, because a row with a high rate soon has a high counter. */
async function look(client: AdminClient, { subject }: TopOptions): Promise<Reading | Failure> {
  const { count } = subjects[subject];
  const [rows, figures] = await Promise.all([
    client.list(subject, { sort: `-${count}` }, adminLimits.apiPageMost),
    client.one("stats"),
  ]);
  if (rows instanceof Failure) return rows;
  return figures instanceof Failure ? figures : { rows: rows.items, figures };
}

function show(before: Reading, now: Reading, options: TopOptions, screen: Screen): void {
  const { subject, rows, isJson, isOnce } = options;
  const { per } = subjects[subject];
  const seconds = secondsBetween(before.figures, now.figures);
  const rated = ratedRows(before.rows, now.rows, subject, seconds);
  const fitting = isOnce ? rows : Math.min(rows, Math.max(1, screen.lines - 4));
  const first = rated.slice(0, fitting);
  if (isJson) return screen.print(json({ kind: "Top", seconds, items: first }));
  const columns = [
    { head: per, of: (row: Row) => (numberAt(row, "perSecond") ?? 0).toFixed(1) },
    ...views[subject].columns,
  ];
  const clear = isOnce ? "" : "\x1b[H\x1b[2J";
  const table =
    first.length === 0 ? `No ${subject}\n` : tableOf(columns, first, { isWide: false, hasHeads: true });
  screen.print(`${clear}${headOf(before.figures, now.figures, seconds)}\n${table}`);
}

function secondsBetween(before: Row, now: Row): number {
  return Math.max(0.001, ((numberAt(now, "uptimeMs") ?? 0) - (numberAt(before, "uptimeMs") ?? 0)) / 1000);
}

/** Returns the rows with their rates, highest rate first. The counter of a new row is taken to have been 0 before. */
function ratedRows(
  before: readonly Row[],
  now: readonly Row[],
  subject: keyof typeof subjects,
  seconds: number,
): readonly Row[] {
  const { count, key } = subjects[subject];
  const counts = new Map(Array.from(keysOf(before, key), ([row, name]) => [name, numberAt(row, count) ?? 0]));
  const names = keysOf(now, key);
  return now
    .map((row) => {
      const grown = Math.max(0, (numberAt(row, count) ?? 0) - (counts.get(names.get(row) ?? "") ?? 0));
      return { ...row, perSecond: grown / seconds };
    })
    .toSorted((a, b) => b.perSecond - a.perSecond);
}

/**
 * Returns a key for each row, by which the row is found in another reading. Rows with the same fields are numbered from
 * the oldest: a client whose connections are in two workers has two such rows. `since` itself is no part of the key,
 * because it may differ by a millisecond between two readings.
 */
function keysOf(rows: readonly Row[], fields: readonly string[]): ReadonlyMap<Row, string> {
  const keys = new Map<Row, string>();
  const seen = new Map<string, number>();
  for (const row of rows.toSorted((a, b) => (textAt(a, "since") < textAt(b, "since") ? -1 : 1))) {
    const key = fields.map((name) => textAt(row, name)).join("\n");
    const place = seen.get(key) ?? 0;
    seen.set(key, place + 1);
    keys.set(row, `${key}\n${place}`);
  }
  return keys;
}

function headOf(before: Row, now: Row, seconds: number): string {
  const perSecond = (path: string): number =>
    Math.max(0, (numberAt(now, path) ?? 0) - (numberAt(before, path) ?? 0)) / seconds;
  const codes = Object.keys(rowOf(now["requests"])).toSorted();
  const requests = codes.map((code) => `${shown(code)} ${rate(perSecond(`requests.${code}`))}`).join(", ");
  const words = [
    `watchkeeper ${textAt(now, "version")} ${shown(textAt(now, "name"))}`.trimEnd(),
    `up ${age(numberAt(now, "uptimeMs"))}`,
    `requests/s: ${requests || "none"}`,
    `events/s: ${rate(perSecond("watchEvents"))}`,
    `CPU ${Math.round(perSecond("cpuMs") / 10)}%`,
  ];
  return `${words.join("   ")}\n`;
}
