import type { OperatorsFigures } from "./scene.ts";

/** Returns one line about a run. */
export function figureOf(played: OperatorsFigures): string {
  const { mistakes, faults, drifts, namedMs, endedMs, driftNamedMs, watches, counts, problems } = played;
  const reads = counts.get("reads: 200") ?? 0;
  return (
    `${Math.round(played.virtualMs / 3_600_000)} h, ${mistakes} mistakes, ${faults} faults of apiservers, ` +
    `${drifts} changes of flags; named after ${namedMs} ms at most, over after ${endedMs} ms, flags after ` +
    `${Math.round(driftNamedMs / 60_000)} min; ${watches} watches, ${counts.get("events") ?? 0} events, ` +
    `${counts.get("moves") ?? 0} moves, ${reads} reads; ${problems.length} problems`
  );
}
