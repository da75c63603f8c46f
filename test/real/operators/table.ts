/** The runs side by side, as Markdown, and the results of watchkeeper's run that break its promise. */
import { markdown, quantile } from "../rig/table.ts";
import type { Played } from "./play.ts";

const columns: readonly (readonly [string, (played: Played) => string | number])[] = [
  ["through", ({ kind }) => kind],
  ["minutes", ({ minutes }) => minutes.toFixed(0)],
  ["faults", ({ faults }) => faults.length],
  ["operators' processes", ({ processes }) => processes],
  ["leader changes", ({ leaderChanges }) => leaderChanges.length],
  ["relists", ({ relists }) => relists.length],
  ["watches closed", ({ closed }) => closed.length],
  ["WebSockets closed", ({ closedWebSockets }) => closedWebSockets.length],
  ["operators' errors", ({ errors }) => errors.length],
  ["writes of unknown outcome", ({ unknownWrites }) => unknownWrites.length],
  ["restarts", ({ restarts }) => restarts.length],
  ["reconciles", ({ reconciles }) => reconciles],
  ["reconcile latency p99, ms", ({ latencies }) => quantile(latencies, 0.99)],
  ["longest, ms", ({ latencies }) => latencies.at(-1) ?? Number.NaN],
  ["longest direct read, ms", ({ slowestDirectMs }) => slowestDirectMs],
  ["never reconciled", ({ unreconciled }) => unreconciled.length],
];

export function table(played: readonly Played[]): string {
  const rows = played.map((one) => columns.map(([, cell]) => cell(one)));
  return markdown(
    columns.map(([name]) => name),
    rows,
  );
}

/** Returns one line for each effect that clients noticed. */
export function noticed(played: Played): readonly string[] {
  const at = (ms: number): string => new Date(ms).toISOString();
  return [
    ...played.leaderChanges.map((change) => `leader changed: ${change}`),
    ...played.relists.map((one) => `listed anew: ${at(one.at)} ${one.user} ${one.what}`),
    ...played.closed.map((one) => `watch closed: ${at(one.at)} ${one.user} ${one.what} from ${one.from}`),
    ...played.ended.map((line) => `watch ended: ${line}`),
    ...played.errors.map((one) => `error: ${at(one.at)} ${one.who} ${one.text}`),
    ...played.restarts.map((name) => `restarted: ${name}`),
    ...played.unreconciled.map((task) => `never reconciled: ${task}`),
  ];
}
