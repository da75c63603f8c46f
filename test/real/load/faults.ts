/**
 * The faults, each of which affects one apiserver: its packets are dropped, its process is stopped, killed or
 * terminated, or it is replaced in a rolling restart. All apiservers are ready again before the next fault.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../support/random.ts";
import type { Apiserver } from "../rig/apiserver.ts";
import type { Cluster } from "../rig/cluster.ts";
import type { Proxy } from "../rig/proxy.ts";
import { freeze, hole, rollOver } from "./troubles.ts";
import type { Outage } from "./unknown-writes.ts";

const awayMs = 8_000;

export const faults: readonly { readonly name: string; run(victim: Apiserver): Promise<void> }[] = [
  { name: "dropped", run: (victim) => hole(victim, "both", awayMs) },
  // Packets from the apiserver still arrive, as with a firewall that has lost the connection state of one direction.
  { name: "dropped inbound", run: (victim) => hole(victim, "in", awayMs) },
  { name: "stopped", run: (victim) => freeze(victim, awayMs) },
  {
    name: "killed",
    async run(victim) {
      await victim.kill();
      await sleep(awayMs);
      await victim.restart();
    },
  },
  {
    name: "terminated",
    async run(victim) {
      void victim.terminate();
      await sleep(awayMs);
      await victim.restart();
    },
  },
  { name: "rolled over", run: rollOver },
];

/** A fault and the number of the apiserver that it affects. */
export type Planned = { readonly victim: number; readonly fault: (typeof faults)[number] };

/**
 * Returns each fault of each apiserver once. Two consecutive faults affect different apiservers, unless `random`
 * shuffles the order.
 */
export function rounds(apiservers: number, random?: Random): readonly Planned[] {
  const planned = Array.from({ length: apiservers }, (_, round) =>
    faults.map((fault, number) => ({ victim: (number + round) % apiservers, fault })),
  ).flat();
  if (random === undefined) return planned;
  for (let last = planned.length - 1; last > 0; last -= 1) {
    const other = random.below(last + 1);
    [planned[last], planned[other]] = [planned[other] as Planned, planned[last] as Planned];
  }
  return planned;
}

export class Faults {
  /** "api-0 killed", in the order in which the faults ran. */
  readonly played: string[] = [];
  readonly outages: Outage[] = [];
  /** Faults after which the proxy did not see all apiservers as ready within 30 s. */
  readonly unsettled: string[] = [];
  /** The apiserver that has a fault now; undefined between two faults. */
  victim: Apiserver | undefined;
  readonly #cluster: Cluster;
  readonly #proxy: Pick<Proxy, "settled">;
  readonly #everyMs: number;
  readonly #planned: readonly Planned[];
  readonly #stop = new AbortController();
  readonly #over: Promise<void>;

  constructor(cluster: Cluster, proxy: Pick<Proxy, "settled">, everyMs: number, random?: Random) {
    this.#cluster = cluster;
    this.#proxy = proxy;
    this.#everyMs = everyMs;
    this.#planned = rounds(cluster.apiservers.length, random);
    this.#over = this.#run();
  }

  /** Starts no more faults. Resolves when the last fault is over. Rejects if an apiserver did not recover. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#over;
  }

  async #run(): Promise<void> {
    const { apiservers } = this.#cluster;
    for (let number = 0; !this.#stop.signal.aborted; number += 1) {
      const began = Date.now();
      const planned = this.#planned[number % this.#planned.length];
      if (planned === undefined) return;
      const { fault } = planned;
      const victim = this.#cluster.apiserver(planned.victim);
      this.played.push(`${victim.name} ${fault.name}`);
      this.victim = victim;
      const outage = { backend: victim.name, since: Date.now(), until: Number.POSITIVE_INFINITY };
      this.outages.push(outage);
      await fault.run(victim);
      await victim.ready();
      outage.until = Date.now();
      this.victim = undefined;
      await this.#proxy
        .settled(apiservers.length, 30_000)
        .catch((error: Error) => this.unsettled.push(`${victim.name} ${fault.name}: ${error.message}`));
      await this.#pause(began + this.#everyMs - Date.now());
    }
  }

  async #pause(ms: number): Promise<void> {
    if (ms > 0) await sleep(ms, undefined, { signal: this.#stop.signal }).catch(() => undefined);
  }
}
