/** Two backends whose caches are compared, and who is in doubt. */
import type { WatchEvent } from "../../src/watch/codec/event.ts";
import { type Doubt, Standings } from "../../src/watch/progress/stale.ts";
import type { Standing } from "../../src/watch/progress/standing.ts";

export const bookmark = (version: string, endsInitialEvents = false): WatchEvent => ({
  type: "BOOKMARK",
  version,
  endsInitialEvents,
  code: 0,
  reason: "",
  oldest: "",
  key: "",
});

/** Backends a and b, each with one watch on pods. */
export function two(): { standings: Standings; a: Standing; b: Standing } {
  const standings = new Standings();
  const a = standings.of("a", "/pods");
  const b = standings.of("b", "/pods");
  a.join(false, 0);
  b.join(false, 0);
  return { standings, a, b };
}

export const names = (standings: Standings, now: number): string[] =>
  standings.judge(now).map(({ standing, version, behindMs }) => `${standing.backend} ${version} ${behindMs}`);

export function doubted(standings: Standings, now: number): Doubt {
  const [doubt] = standings.judge(now);
  if (doubt === undefined) throw new Error("Nobody is in doubt");
  return doubt;
}
