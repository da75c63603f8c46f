/** Runs upgrades of one deployment shape under load, and returns what clients noticed. */

import { setTimeout as sleep } from "node:timers/promises";
import { places } from "../load/stage.ts";
import { ask, order } from "../rig/ask.ts";
import { startCluster } from "../rig/cluster.ts";
import { type Counts, Crowd } from "./crowd.ts";
import type { Shape } from "./shapes.ts";

export type Played = {
  readonly shape: Shape;
  readonly upgrades: number;
  readonly seconds: number;
  readonly moves: number | undefined;
  readonly counts: Counts;
};

/** At most `most` upgrades; none begins later than `seconds` after the start. */
export type Length = { readonly most: number; readonly seconds: number };

export async function play(shape: Shape, { most, seconds: mostSeconds }: Length): Promise<Played> {
  const cluster = await startCluster({ apiservers: 2, pods: true });
  try {
    const containers = [{ name: "main", image: "none" }];
    const spec = { nodeName: cluster.node.name, containers };
    const path = "/api/v1/namespaces/default/pods";
    await order(cluster.admin, { method: "POST", path, body: { metadata: { name: "shell" }, spec } });
    while (!/"phase":"Running"/.test((await ask(cluster.admin, { path: places.pod })).text)) await sleep(100);
    const running = await shape.start(cluster);
    try {
      const server = { url: running.url, caFile: cluster.caFile, token: cluster.token };
      const crowd = await Crowd.start({ cluster, server, proxy: running });
      const began = Date.now();
      let upgrades = 0;
      for (; upgrades < most && Date.now() < began + mostSeconds * 1_000; upgrades++)
        await crowd.during(running.upgrade);
      await sleep(1_000);
      const seconds = (Date.now() - began) / 1_000;
      return { shape, upgrades, seconds, moves: running.moves?.(), counts: await crowd.stop() };
    } finally {
      await running.stop();
    }
  } finally {
    await cluster.stop();
  }
}

/**
 * Returns the number of watches that did not end between two events. client-go opens such a watch again and does not
 * list.
 */
export function brokenWatches({ storm }: Counts): number {
  const broken = [...storm.watches.ends].filter(
    ([how]) => !how.startsWith("ended: EOF") && how !== "ended: own time-out",
  );
  return broken.reduce((sum, [, count]) => sum + count, 0);
}

/** Returns a sentence for each effect that clients noticed. */
export function noticed({ counts, moves = 0 }: Played): string[] {
  const { storm } = counts;
  const { watches, informers } = storm;
  const figures = {
    "connections refused": counts.refused,
    "connections reset": counts.reset,
    "watches ended in the middle": brokenWatches(counts),
    "events missing": watches.missing,
    "events doubled": watches.doubled,
    "lists by watches": watches.relists,
    "lists by informers": informers.relists,
    "stores of informers that differ from etcd": informers.unequal,
    "leases lost": counts.leasesLost,
    "requests of leaders that failed": counts.leaseFailures.length,
    "execs that ended before the drain's end": counts.execsCut,
    "moves of the VIP": moves,
  };
  const wrong = Object.entries(figures).filter(([, count]) => count > 0);
  return [
    ...wrong.map(([what, count]) => `${what}: ${count}`),
    ...(counts.otherwise.trim() === "" ? [] : [`GETs on new connections: ${counts.otherwise}`]),
    ...(storm.gets.failures === "" ? [] : [`GETs on open connections: ${storm.gets.failures}`]),
  ];
}
