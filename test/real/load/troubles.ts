/** The faults that a storm may cause. The call of `run` resolves when the fault is over. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../support/random.ts";
import type { Apiserver } from "../rig/apiserver.ts";
import type { Direction } from "../rig/network.ts";

export type Trouble = {
  readonly name: string;
  run(apiserver: Apiserver, random: Random): Promise<void>;
};

/** Milliseconds from SIGTERM to SIGKILL, like the grace period of a kubelet. */
const graceMs = 10_000;

function between(random: Random, least: number, most: number): number {
  return least + random.below(most - least);
}

/** Drops all packets in this direction for `ms`. */
export async function hole(apiserver: Apiserver, direction: Direction, ms: number): Promise<void> {
  apiserver.blackHole(direction);
  await sleep(ms);
  apiserver.heal();
}

/** Sends SIGSTOP, and SIGCONT after `ms`. */
export async function freeze(apiserver: Apiserver, ms: number): Promise<void> {
  apiserver.freeze();
  await sleep(ms);
  apiserver.thaw();
}

/** Sends SIGTERM, SIGKILL after the grace period, and starts a new process. */
export async function rollOver(apiserver: Apiserver): Promise<void> {
  await Promise.race([apiserver.terminate(), sleep(graceMs)]);
  await apiserver.restart();
}

export const troubles: readonly Trouble[] = [
  ...(["both", "in", "out"] as const).map(
    (direction): Trouble => ({
      name: `hole (${direction})`,
      run: (apiserver, random) => hole(apiserver, direction, between(random, 3_000, 7_000)),
    }),
  ),
  { name: "short hole", run: (apiserver, random) => hole(apiserver, "both", between(random, 300, 1_500)) },
  { name: "frozen", run: (apiserver, random) => freeze(apiserver, between(random, 3_000, 7_000)) },
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
        await hole(apiserver, "both", 1_000);
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
