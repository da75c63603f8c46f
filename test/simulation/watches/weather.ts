/** What one run is to be like: drawn from the seed before anything happens. */
import type { Random } from "../random.ts";
import type { Progress } from "./cache.ts";
import type { WireOptions } from "./wires.ts";

export type Weather = {
  /** Faults begin before this; all are over by then. */
  readonly stormMs: number;
  readonly faults: number;
  /** True if the only fault is a silence of all backends at once, now and then. Then nothing that lives may end (D14). */
  readonly isBlips: boolean;
  readonly backends: number;
  readonly clients: number;
  /** Between two writes of the cluster. */
  readonly writeMs: number;
  /** Of most objects, and of a few. */
  readonly objectBytes: number;
  readonly largeBytes: number;
  readonly upstream: WireOptions;
  readonly downstream: WireOptions;
  /** How caches learn that nothing has happened: kubeadm's setting, or etcd's own. */
  readonly progress: Progress;
};

export function weatherOf(random: Random): Weather {
  // Few runs are long enough for bookmarks of every minute and for their absence to show.
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
