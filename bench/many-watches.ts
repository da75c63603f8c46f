/** Starts a proxy with many open watches on scripted backends. Reports the ports of the proxy's metrics and API. */
import type { Peer } from "./peer.ts";
import { watchkeeperAt } from "./peers/watchkeeper.ts";
import { progress, sleep } from "./processes.ts";
import { startRig } from "./rig.ts";

/**
 * Wait, in ms, before the heap is read. Without the wait, the heap would include garbage that the next collection
 * frees.
 */
const settleMs = 3_000;
/** The rate at which watches are opened: the same as in scenarios/fanout.ts. */
const opensPerSecond = 3_000;
const api = 17_480;

type ManyWatches = {
  readonly pid: number;
  /** Such as "http://127.0.0.1:17480". */
  readonly apiUrl: string;
  readonly metricsUrl: string;
  stop(): Promise<void>;
};

/**
 * Starts a proxy and opens `watches` watches. `each`: the number of watches of each client. `at`: the repository whose
 * proxy is measured.
 */
export async function openWatches({
  watches,
  each = 100,
  at,
}: {
  readonly watches: number;
  readonly each?: number;
  readonly at: string;
}): Promise<ManyWatches> {
  const rig = await startRig();
  const ports = { metrics: 0 };
  /** Watchkeeper as in all benchmarks, except that this module chooses the admin ports, because it reports them. */
  const peer: Peer = {
    ...watchkeeperAt("watchkeeper", at, {}),
    command(place) {
      ports.metrics = place.metricsPort;
      const admin = { address: `127.0.0.1:${api}`, metricsAddress: `127.0.0.1:${place.metricsPort}` };
      return watchkeeperAt("watchkeeper", at, { admin }).command(place);
    },
  };
  const proxy = await rig.launch(peer, "live");
  const words = ["watch", "-to", `localhost:${proxy.port}`, "-control", rig.control];
  const numbers = { clients: watches / each, watches: each, pace: opensPerSecond };
  const load = rig.talk([
    ...words,
    ...Object.entries(numbers).flatMap(([key, value]) => [`-${key}`, String(value)]),
  ]);
  await load.next();
  progress(`opening ${watches} watches\n`);
  load.say("open");
  await load.next();
  await sleep(settleMs);
  return {
    pid: proxy.pid ?? 0,
    apiUrl: `http://127.0.0.1:${api}`,
    metricsUrl: `http://127.0.0.1:${ports.metrics}`,
    stop: async () => {
      await load.stop();
      await proxy.stop();
      await rig.stop();
    },
  };
}
