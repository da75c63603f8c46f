/**
 * The faults of a day. Each strikes one apiserver, or one after another, so that at least one apiserver always serves.
 * Most are those of faults.ts with durations of their own: an apiserver of a real cluster is away for a minute, not for
 * a second.
 */
import type { Random } from "../random.ts";
import type { SimulatedApiserver } from "./apiserver.ts";
import { type Fault, type FaultParts, faults } from "./faults.ts";

/** An apiserver that stops lets its watches run this long: kube-apiserver's default (watch.md §5.5). */
const graceMs = 60_000;
const awayMs = 5_000;
const startingMs = 1_000;
/** The time between the return of one apiserver and the stop of the next one, as `kubeadm upgrade` needs it. */
const betweenMs = 45_000;
/**
 * A compaction that keeps only the versions of this time: much less than usual, but clients have newer versions, because
 * each watch gets a bookmark every minute.
 */
const keptVersionsMs = 120_000;
/** A slow apiserver stands still, then runs for a moment. The proxy suspects it after 500 ms without an answer. */
const stoppedMs = 700;
const runsMs = 200;

export type DayFaultParts = FaultParts & {
  /** The version that was the newest one `ms` ago. */
  readonly versionBefore: (ms: number) => number;
  /** Called each time that an apiserver stops or begins to serve. */
  readonly look: (backend: SimulatedApiserver) => void;
};

export type DayFault = {
  readonly name: string;
  readonly ms: (random: Random) => number;
  /** Begins the fault and returns a function that ends it. */
  readonly begin: (parts: DayFaultParts) => () => void;
};

const minute = (random: Random): number => random.whole(20_000, 60_000);
const moment = (): number => 10_000;
const none = (): void => {};

/** The faults of faults.ts that a day has, each with its duration. */
const durations: ReadonlyMap<string, DayFault["ms"]> = new Map([
  ["drop both ways", minute],
  ["receives nothing", minute],
  ["sends nothing", minute],
  ["one connection drops", minute],
  ["one connection drops one way", minute],
  ["one connection is reset", moment],
  ["frozen", minute],
  ["killed", minute],
  ["GOAWAY", moment],
  ["cache lags", minute],
  ["cut off from etcd", minute],
  ["cache listed again", moment],
  ["cache initialises", (random: Random) => random.whole(5_000, 20_000)],
]);

function asInDays({ name, begin }: Fault): DayFault[] {
  const ms = durations.get(name);
  return ms === undefined ? [] : [{ name, ms, begin }];
}

/** Shuts one apiserver down and starts it again. */
function restart(backend: SimulatedApiserver, { findings, look }: DayFaultParts): void {
  backend.shutDown(graceMs, () => {
    look(backend);
    findings.world.after(awayMs, () => {
      backend.restart(startingMs);
      look(backend);
    });
  });
  look(backend);
}

const restartMs = graceMs + 1_000 + awayMs + startingMs;

/** Stops the apiserver's process again and again, so that every response takes long. */
function slowDown({ backend, look, findings: { world } }: DayFaultParts): () => void {
  let isOver = false;
  const stop = (): void => {
    if (isOver) return;
    backend.freeze();
    look(backend);
    world.after(stoppedMs, () => {
      backend.thaw();
      look(backend);
      world.after(runsMs, stop);
    });
  };
  stop();
  return () => {
    isOver = true;
  };
}

export const dayFaults: readonly DayFault[] = [
  ...faults.flatMap(asInDays),
  {
    name: "graceful restart",
    ms: () => restartMs + startingMs,
    begin: (parts) => {
      restart(parts.backend, parts);
      return none;
    },
  },
  {
    name: "rolling upgrade",
    ms: () => 3 * (restartMs + betweenMs),
    begin: (parts) => {
      for (const [at, backend] of parts.apiservers.entries())
        parts.findings.world.after(at * (restartMs + betweenMs), () => restart(backend, parts));
      return none;
    },
  },
  {
    // At first all packets are dropped. Then the machine is back with a new process, and its kernel resets connections.
    name: "machine restarts",
    ms: minute,
    begin: ({ backend }) => {
      backend.host.drop();
      return () => {
        backend.kill();
        backend.restart(startingMs);
        backend.host.heal();
      };
    },
  },
  { name: "slow", ms: minute, begin: slowDown },
  {
    name: "readyz fails",
    ms: minute,
    begin: ({ backend }) => {
      backend.isUnready = true;
      return () => {
        backend.isUnready = false;
      };
    },
  },
  {
    name: "compaction",
    ms: moment,
    begin: ({ apiservers, findings, compact, versionBefore }) => {
      const [one] = apiservers;
      compact(Math.max(0, (one?.cache.revision ?? 0) - versionBefore(keptVersionsMs)));
      findings.count("compactions");
      return none;
    },
  },
];
