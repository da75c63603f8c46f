/** What may happen to an apiserver in a storm: begun, borne for a while, and over when the call resolves. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../support/random.ts";
import type { Apiserver } from "../rig/apiserver.ts";

export type Trouble = {
  readonly name: string;
  run(apiserver: Apiserver, random: Random): Promise<void>;
};

/** What a kubelet waits for before it kills. */
const graceMs = 10_000;

function between(random: Random, least: number, most: number): number {
  return least + random.below(most - least);
}

/** SIGTERM, SIGKILL after the grace, and a new process. */
export async function rollOver(apiserver: Apiserver): Promise<void> {
  await Promise.race([apiserver.terminate(), sleep(graceMs)]);
  await apiserver.restart();
}

export const troubles: readonly Trouble[] = [
  ...(["both", "in", "out"] as const).map(
    (direction): Trouble => ({
      name: `hole (${direction})`,
      async run(apiserver, random) {
        apiserver.blackHole(direction);
        await sleep(between(random, 3_000, 7_000));
        apiserver.heal();
      },
    }),
  ),
  {
    name: "short hole",
    async run(apiserver, random) {
      apiserver.blackHole();
      await sleep(between(random, 300, 1_500));
      apiserver.heal();
    },
  },
  {
    name: "frozen",
    async run(apiserver, random) {
      apiserver.freeze();
      await sleep(between(random, 3_000, 7_000));
      apiserver.thaw();
    },
  },
  {
    name: "killed",
    async run(apiserver) {
      await apiserver.kill();
      await apiserver.restart();
    },
  },
  { name: "rolled over", run: rollOver },
  {
    name: "flapping",
    async run(apiserver) {
      for (let count = 0; count < 3; count++) {
        apiserver.blackHole();
        await sleep(1_000);
        apiserver.heal();
        await sleep(1_000);
      }
    },
  },
  {
    name: "cut from etcd",
    async run(apiserver, random) {
      apiserver.cutEtcd();
      await sleep(between(random, 5_000, 10_000));
      apiserver.heal();
    },
  },
];
