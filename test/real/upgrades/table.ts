/** The table that `npm run test:upgrades` prints: one line for each shape. */
import { brokenWatches, type Played } from "./play.ts";

export const heads = [
  "shape",
  "upgrades",
  "new connections",
  "refused",
  "reset",
  "slowest GET, ms",
  "watches cut off",
  "informers' lists",
  "leases lost",
  "execs cut off",
  "VIP moves",
];

export function lineOf({ shape, upgrades, moves, counts }: Played): readonly string[] {
  const { connections, refused, reset, slowestMs, storm, leasesLost, execsCut } = counts;
  const relists = storm.informers.relists + storm.watches.relists;
  const figures = [
    upgrades,
    connections,
    refused,
    reset,
    slowestMs,
    brokenWatches(counts),
    relists,
    leasesLost,
  ];
  return [shape.name, ...figures.map(String), String(execsCut), moves === undefined ? "–" : String(moves)];
}
