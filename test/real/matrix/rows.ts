/** The faults of the matrix, and what each of them may cost clients. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../support/random.ts";
import type { Stage } from "../load/stage.ts";
import { ask } from "../rig/ask.ts";
import type { Crew } from "./crew.ts";

/** Time limits in milliseconds from the fault, and states that the victim must not get. */
export type Targets = {
  readonly suspect?: { readonly median: number; readonly most: number };
  readonly dead?: number;
  readonly draining?: number;
  /** States that the proxy must never give the victim. If the victim still answers, "dead" would be false. */
  readonly never: readonly string[];
  /** Longest time that a GET may wait for a response head, in milliseconds. */
  readonly get: number;
  /** True if a GET that is cut off after its head counts as failed too. */
  readonly isWhole?: boolean;
  /** `all`: no POST fails, and no LIST is cut short. Default: a POST may fail with an unknown outcome. */
  readonly writes?: "all";
  /**
   * What exec, port-forward and logs on the victim may do: `live` (stay open), end within this many milliseconds, or
   * `own` (end only with their apiserver).
   */
  readonly tunnels: "live" | "own" | number;
  /** Time limit for logs, if it differs from that of exec and port-forward: logs use a shared upstream connection. */
  readonly logs?: number;
  /** Latest time at which a new client may still be sent to the victim. */
  readonly elsewhere?: number;
};

export type Row = {
  readonly name: string;
  /** Prepares the victim before the clients start. */
  prepare?(stage: Stage): Promise<void>;
  /**
   * Causes the fault. Resolves when the fault is complete, with the time at which it began, or undefined if it began at
   * the call.
   */
  hurt(stage: Stage, crew: Crew, random: Random): Promise<number | undefined>;
  /** Restores the victim. */
  mend(stage: Stage): Promise<void>;
  readonly observeMs: number;
  readonly targets: Targets;
};

const silent: Targets = {
  suspect: { median: 800, most: 1_200 },
  dead: 3_000,
  never: [],
  get: 1_500,
  tunnels: 3_500,
};
const unseen: Targets = { never: ["dead"], get: 1_500, tunnels: "live" };
const leaving: Targets = { draining: 2_000, never: ["suspect"], get: 1_500, tunnels: "own" };

async function heal({ victim }: Stage): Promise<void> {
  victim.heal();
  await victim.ready();
}

async function restart({ victim }: Stage): Promise<void> {
  await victim.restart();
}

/** A fault that is complete when `act` returns, and began at the call. */
function simple(act: (stage: Stage, crew: Crew, random: Random) => void): Row["hurt"] {
  return async (stage, crew, random) => {
    act(stage, crew, random);
    return undefined;
  };
}

/** Neither apiserver is reachable for `ms`, as if the proxy's own network failed. */
function blip(ms: number): Row {
  return {
    name: `all silent for ${ms / 1_000} s`,
    async hurt({ victim, witness }) {
      for (const apiserver of [victim, witness]) apiserver.blackHole();
      await sleep(ms);
      for (const apiserver of [victim, witness]) apiserver.heal();
      return undefined;
    },
    async mend(stage) {
      stage.witness.heal();
      await heal(stage);
    },
    // The kernel doubles its retransmission timeout each time. So after a hole of `ms`, the next retransmission on an
    // old connection comes at most `ms` later.
    observeMs: ms + 6_000,
    targets: { never: ["dead"], get: ms + 1_000, tunnels: "live" },
  };
}

/** Lets the victim run for 100 ms in every 800 ms, for `forMs`. Then the victim runs normally. */
async function stutter({ victim }: Stage, forMs: number): Promise<void> {
  for (let ms = 0; ms < forMs; ms += 800) {
    victim.freeze();
    await sleep(700);
    victim.thaw();
    await sleep(100);
  }
}

function pick(ports: readonly number[], random: Random): number {
  const port = ports[random.below(ports.length)];
  if (port === undefined) throw new Error("The proxy has no such socket to the victim");
  return port;
}

/** True if a new connection to the victim fails because the victim's certificate has another name. */
async function isForeign({ victim, cluster }: Stage): Promise<boolean> {
  const server = { url: victim.url, caFile: cluster.caFile };
  const reason = await ask(server, { path: "/readyz" }, 2_000).then(
    () => "",
    (error: Error) => error.message,
  );
  return /altnames/i.test(reason);
}

export const rows: readonly Row[] = [
  ...(["both", "in", "out"] as const).map(
    (direction): Row => ({
      // Names from the proxy's view: it can still receive from a victim that receives nothing ("in").
      name: { both: "drop both ways", in: "receive only", out: "send only" }[direction],
      hurt: simple(({ victim }) => victim.blackHole(direction)),
      mend: heal,
      observeMs: 6_000,
      targets: silent,
    }),
  ),
  {
    name: "one 4-tuple: an upstream connection",
    hurt: simple(({ victim }, { connectionPorts }, random) => victim.sever(pick(connectionPorts, random))),
    mend: heal,
    observeMs: 8_000,
    targets: { never: ["suspect", "dead", "draining"], get: 1_500, tunnels: "live", logs: 33_000 },
  },
  {
    name: "one 4-tuple: a tunnel",
    hurt: simple(({ victim }, { tunnelPorts }, random) => victim.sever(pick(tunnelPorts, random))),
    mend: heal,
    // The proxy keeps a tunnel for 30 s while its apiserver answers PINGs: TCP might still carry it over.
    observeMs: 34_000,
    targets: { never: ["suspect", "dead", "draining"], get: 1_500, tunnels: 33_000 },
  },
  {
    name: "SIGSTOP",
    hurt: simple(({ victim }) => victim.freeze()),
    async mend(stage) {
      stage.victim.thaw();
      await stage.victim.ready();
    },
    observeMs: 6_000,
    targets: silent,
  },
  {
    name: "SIGKILL",
    hurt: simple(({ victim }) => void victim.kill()),
    mend: restart,
    observeMs: 5_000,
    targets: { dead: 300, never: [], get: 1_500, tunnels: 3_500 },
  },
  {
    name: "SIGTERM",
    hurt: simple(({ victim }) => void victim.terminate()),
    // The victim may still be waiting for open requests. The repair does not wait for the victim's minute of grace.
    mend: restart,
    observeMs: 6_000,
    targets: leaving,
  },
  {
    name: "readyz false",
    prepare: ({ victim }) => victim.restart(["--shutdown-delay-duration=8s"]),
    hurt: simple(({ victim }) => void victim.terminate()),
    async mend({ victim }) {
      while (victim.isRunning) await sleep(100);
      await victim.restart();
    },
    observeMs: 6_500,
    targets: leaving,
  },
  {
    name: "flapping 1 s on, 1 s off",
    async hurt({ victim }) {
      for (let count = 0; count < 4; count++) {
        victim.blackHole();
        await sleep(1_000);
        victim.heal();
        await sleep(1_000);
      }
      return undefined;
    },
    mend: heal,
    observeMs: 2_000,
    targets: unseen,
  },
  {
    name: "TLS certificate of another name",
    async hurt(stage) {
      stage.victim.presentForeign();
      while (!(await isForeign(stage))) await sleep(50);
      return Date.now();
    },
    async mend(stage) {
      stage.victim.presentOwn();
      while (await isForeign(stage)) await sleep(50);
      await stage.victim.ready();
    },
    observeMs: 6_000,
    targets: { ...unseen, elsewhere: 5_000 },
  },
  {
    name: "1.5 s hole that heals",
    async hurt({ victim }) {
      victim.blackHole();
      await sleep(1_500);
      victim.heal();
      return undefined;
    },
    mend: heal,
    observeMs: 5_000,
    targets: unseen,
  },
  {
    name: "its path to etcd cut",
    hurt: simple(({ victim }) => victim.cutEtcd()),
    mend: heal,
    observeMs: 12_000,
    targets: { ...unseen, get: 5_000, elsewhere: 5_000 },
  },
  blip(2_000),
  blip(5_000),
  blip(9_000),
  {
    name: "lossy: 20 % each way",
    hurt: simple(({ victim }) => victim.lose(0.2)),
    mend: heal,
    observeMs: 10_000,
    targets: { never: ["dead"], get: 2_500, tunnels: "live", logs: 15_000 },
  },
  ...(
    [
      ["from", 600],
      ["to", 600],
      ["from", 1_400],
    ] as const
  ).map(
    ([way, bytes]): Row => ({
      name: `mtu: packets above ${bytes} bytes ${way} it are lost`,
      // With this padding, an object is larger than the largest packet that passes.
      async prepare(stage) {
        stage.padding = 2_000;
      },
      // The hole lasts 15 s. The kernel's next retransmission comes at most 25.4 s after the first loss.
      hurt: simple(({ victim }) => {
        victim.loseLarge(bytes, way);
        setTimeout(() => victim.heal(), 15_000);
      }),
      async mend(stage) {
        stage.padding = 0;
        await heal(stage);
      },
      observeMs: 30_000,
      targets: {
        suspect: { median: 1_500, most: 1_500 },
        never: [],
        get: 2_500,
        isWhole: true,
        writes: "all",
        tunnels: "live",
      },
    }),
  ),
  {
    name: "slow: runs 100 of 800 ms",
    async hurt(stage) {
      await stutter(stage, 8_000);
      return undefined;
    },
    mend: ({ victim }) => victim.ready(),
    observeMs: 3_000,
    targets: { never: ["dead"], get: 2_500, tunnels: "live" },
  },
  {
    name: "self-pause: the proxy stands still for 5 s",
    async hurt({ proxy }) {
      const { pids } = proxy;
      for (const pid of pids) process.kill(pid, "SIGSTOP");
      await sleep(5_000);
      // The parent continues last. Otherwise it could find its workers silent for too long, and kill them.
      for (const pid of pids.toReversed()) process.kill(pid, "SIGCONT");
      return undefined;
    },
    mend: async () => {},
    observeMs: 5_000,
    targets: { never: ["dead"], get: 6_000, tunnels: "live" },
  },
];
