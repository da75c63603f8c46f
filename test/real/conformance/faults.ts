/** One apiserver in turn is dropped, stopped, killed, terminated, rolled over; each time all are ready again after it. */
import { setTimeout as sleep } from "node:timers/promises";
import { rollOver } from "../load/troubles.ts";
import type { Apiserver } from "../rig/apiserver.ts";
import type { Cluster } from "../rig/cluster.ts";
import type { Proxy } from "../rig/proxy.ts";

const awayMs = 8_000;

export const faults: readonly { readonly name: string; run(victim: Apiserver): Promise<void> }[] = [
  {
    name: "dropped",
    async run(victim) {
      victim.blackHole();
      await sleep(awayMs);
      victim.heal();
    },
  },
  {
    name: "stopped",
    async run(victim) {
      victim.freeze();
      await sleep(awayMs);
      victim.thaw();
    },
  },
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

export class Faults {
  /** "api-0 killed", in their order. */
  readonly played: string[] = [];
  /** Times that not all apiservers were ready in the proxy's eyes half a minute after a fault. */
  readonly unsettled: string[] = [];
  readonly #cluster: Cluster;
  readonly #proxy: Proxy;
  readonly #everyMs: number;
  readonly #stop = new AbortController();
  readonly #over: Promise<void>;

  constructor(cluster: Cluster, proxy: Proxy, everyMs: number) {
    this.#cluster = cluster;
    this.#proxy = proxy;
    this.#everyMs = everyMs;
    this.#over = this.#run();
  }

  /** Resolves when the last fault is over. Rejects if an apiserver could not be mended. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#over;
  }

  async #run(): Promise<void> {
    const { apiservers } = this.#cluster;
    for (let number = 0; !this.#stop.signal.aborted; number += 1) {
      const began = Date.now();
      // Five faults and three apiservers: each fault comes to each apiserver.
      const victim = this.#cluster.apiserver(number % apiservers.length);
      const fault = faults[number % faults.length];
      if (fault === undefined) return;
      this.played.push(`${victim.name} ${fault.name}`);
      await fault.run(victim);
      await victim.ready();
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
