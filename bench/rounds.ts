/** Measures every peer once in each round, so that a slow minute of the machine affects all peers alike. */
import type { Peer, Proxy } from "./peer.ts";
import { countOthers, progress } from "./processes.ts";
import type { Rig } from "./rig.ts";
import type { Figures, Scenario } from "./scenario.ts";

type Order = {
  readonly rig: Rig;
  readonly scenario: Scenario;
  readonly peers: readonly Peer[];
  readonly rounds: number;
  readonly isQuick: boolean;
};

/**
 * Returns the peers that take part in a scenario, in the form in which they take part. "direct" is no proxy and has no
 * memory, CPU time or start time to measure. So it takes part only in scenarios with kept processes, where it shows
 * what the load achieves without a proxy.
 */
export function fitFor(scenario: Scenario, peers: readonly Peer[]): readonly Peer[] {
  const fit = peers.filter((peer) => peer.name !== "direct" || scenario.proxies === "kept");
  if (scenario.isPassthrough !== true) return fit;
  return fit.flatMap((peer) => (peer.name === "direct" ? peer : (peer.passthrough ?? [])));
}

export type Measured = {
  /** The figures of each round, by peer. */
  readonly figures: Map<string, Figures[]>;
  /**
   * The number of cores that other processes used during the measurement. Above 0.1, figures are for orientation only.
   */
  readonly othersCores: number;
};

/**
 * Measures the peers of a scenario. If a peer fails, reports its name and omits the peer from the rest of the scenario.
 */
export async function runRounds(order: Order): Promise<Measured> {
  const otherCores = countOthers();
  const { scenario, peers, rounds } = order;
  const isKept = scenario.proxies === "kept";
  const kept = isKept ? await launchAll(order) : new Map<Peer, Proxy>();
  const results = new Map(peers.map((peer) => [peer.name, [] as Figures[]]));
  let able = isKept ? peers.filter((peer) => kept.has(peer)) : peers;
  if (isKept && !order.isQuick) able = [...(await runRound(order, "warm-up", able, kept)).keys()];
  for (let round = 1; round <= rounds; round++) {
    const measured = await runRound(order, `round ${round}/${rounds}`, able, kept);
    for (const [peer, figures] of measured) results.get(peer.name)?.push(figures);
    able = [...measured.keys()];
  }
  for (const proxy of kept.values()) await proxy.stop();
  const othersCores = otherCores();
  return { figures: results, othersCores };
}

/** Starts the peers. Returns those that have started, and names those that fail. */
async function launchAll(order: Order): Promise<Map<Peer, Proxy>> {
  const all = new Map<Peer, Proxy>();
  for (const peer of order.peers) {
    const proxy = await launchOrName(order, peer);
    if (proxy !== undefined) all.set(peer, proxy);
  }
  return all;
}

async function launchOrName({ rig, scenario }: Order, peer: Peer): Promise<Proxy | undefined> {
  try {
    return await rig.launch(peer, scenario.backend);
  } catch (error) {
    progress(`\n${peer.name} failed to start: ${String(error).slice(0, 2_000)}\n`);
    return undefined;
  }
}

async function runRound(
  order: Order,
  title: string,
  able: readonly Peer[],
  kept: ReadonlyMap<Peer, Proxy>,
): Promise<Map<Peer, Figures>> {
  const measured = new Map<Peer, Figures>();
  progress(`${order.scenario.name} ${title}:`);
  for (const peer of able) {
    progress(` ${peer.name}`);
    const figures = await measureOnce(order, peer, kept.get(peer));
    if (figures !== undefined) measured.set(peer, figures);
  }
  progress("\n");
  return measured;
}

async function measureOnce(order: Order, peer: Peer, kept?: Proxy): Promise<Figures | undefined> {
  const { rig, scenario, isQuick } = order;
  const proxy = kept ?? (await launchOrName(order, peer));
  if (proxy === undefined) return undefined;
  try {
    return await scenario.measure({ proxy, rig, isQuick });
  } catch (error) {
    const said = proxy.said().slice(-1_000);
    progress(`\n${peer.name} failed ${scenario.name}: ${String(error).slice(0, 2_000)}\n${said}\n`);
    return undefined;
  } finally {
    if (kept === undefined) await proxy.stop();
  }
}
