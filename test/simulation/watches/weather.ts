/** The conditions of one run. They are drawn from the seed before the run begins. */
import type { Random } from "../random.ts";
import type { Progress } from "./cache.ts";
import type { WireOptions } from "./wires.ts";

export type Weather = {
  /** Duration of the period with faults. All faults end with it. */
  readonly stormMs: number;
  readonly faults: number;
  /** True if the only fault is a simultaneous silence of all backends from time to time. Then nothing may end (D14). */
  readonly isBlips: boolean;
  readonly backends: number;
  readonly clients: number;
  /** The mean time between two writes to the cluster. */
  readonly writeMs: number;
  /** The size of most objects, and that of a few large ones. */
  readonly objectBytes: number;
  readonly largeBytes: number;
  readonly upstream: WireOptions;
  readonly downstream: WireOptions;
  /**
   * How caches learn that nothing has changed: the interval of etcd's notifications is 5 s with kubeadm and 10 min by
   * default.
   */
  readonly progress: Progress;
};

export function weatherOf(random: Random): Weather {
  // A watch gets a bookmark each minute. Only a long run shows whether bookmarks come, and it takes long to simulate.
  const isLong = random.chance(0.04);
  return {
    stormMs: isLong ? random.whole(90_000, 240_000) : random.whole(8_000, 40_000),
    faults: random.chance(0.1) ? 0 : random.whole(1, isLong ? 12 : 4),
    backends: random.whole(2, 3),
    clients: random.whole(2, 5),
    writeMs: random.pick([100, 300, isLong ? 5_000 : 1_000]),
    objectBytes: random.pick([10, 100, 1_000]),
    largeBytes: random.pick([1_000, 20_000, 100_000]),
    upstream: wireOf(random),
    downstream: { ...wireOf(random), loss: 0 },
    progress: { everyMs: random.pick([5_000, 600_000]), isAsked: true },
    isBlips: random.chance(0.15),
  };
}

function wireOf(random: Random): WireOptions {
  return {
    delayMs: random.next() * random.pick([1, 1, 1, 30]),
    jitterMs: random.next() * random.pick([1, 5]),
    loss: random.pick([0, 0, 0.01]),
    cuts: random.pick([0, 0.1, 0.4]),
  };
}
