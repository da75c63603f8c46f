/** The faults of backends and their connections. Each one begins, lasts for a while and ends. */
import type { Random } from "../random.ts";
import type { SimulatedApiserver } from "./apiserver.ts";
import type { Findings } from "./findings.ts";

export type FaultParts = {
  readonly findings: Findings;
  readonly apiservers: readonly SimulatedApiserver[];
  readonly backend: SimulatedApiserver;
  /** Clients without permissions at present. */
  readonly revoked: Set<string>;
  readonly clients: readonly string[];
  /** Makes etcd and all caches forget all but the last `keep` versions. */
  readonly compact: (keep: number) => void;
};

export type Fault = {
  readonly name: string;
  /** True if the fault strikes all backends at once. */
  readonly isOfAll?: boolean;
  /** How long the fault lasts. The scene picks a duration by default. */
  readonly ms?: (random: Random) => number;
  /** Begins the fault and returns a function that ends it. */
  readonly begin: (parts: FaultParts) => () => void;
};

const none = (): void => {};

/** Drops the packets of one random connection to the backend, in one direction or in both. */
function cutConnection({ backend, findings }: FaultParts, isOneWay: boolean): () => void {
  const far = backend.connection();
  const near = far?.peer;
  if (far === undefined || near === undefined) return none;
  const isIn = findings.random.chance(0.5);
  if (!isOneWay || isIn) near.drops = true;
  if (!isOneWay || !isIn) far.drops = true;
  return () => {
    near.drops = false;
    far.drops = false;
    far.healed();
  };
}

function restarted(backend: SimulatedApiserver, random: Random): void {
  // The end of another fault has already restarted it.
  if (!backend.host.isDown) return;
  backend.restart(random.chance(0.3) ? random.size(3_000) : 0);
}

/** Drops the packets of all connections to all backends. The likely cause is the proxy's own network (D14). */
export const blip: Fault = {
  name: "all backends silent",
  isOfAll: true,
  ms: (random) => random.whole(1_500, 9_000),
  begin: ({ apiservers }) => {
    for (const { host } of apiservers) host.drop();
    return () => {
      for (const { host } of apiservers) host.heal();
    };
  },
};

export const faults: readonly Fault[] = [
  blip,
  {
    name: "drop both ways",
    begin: ({ backend: { host } }) => {
      host.drop();
      return () => host.heal();
    },
  },
  {
    name: "receives nothing",
    begin: ({ backend: { host } }) => {
      host.dropsIn = true;
      return () => host.heal();
    },
  },
  {
    name: "sends nothing",
    begin: ({ backend: { host } }) => {
      host.dropsOut = true;
      return () => host.heal();
    },
  },
  { name: "one connection drops", begin: (parts) => cutConnection(parts, false) },
  { name: "one connection drops one way", begin: (parts) => cutConnection(parts, true) },
  {
    name: "one connection is reset",
    begin: ({ backend }) => {
      backend.connection()?.destroy();
      return none;
    },
  },
  {
    name: "frozen",
    begin: ({ backend }) => {
      backend.freeze();
      return () => backend.thaw();
    },
  },
  {
    name: "killed",
    begin: ({ backend, findings }) => {
      backend.kill();
      return () => restarted(backend, findings.random);
    },
  },
  {
    name: "shut down",
    begin: ({ backend, findings }) => {
      let isGone = false;
      let isOver = false;
      const end = (): void => {
        if (isGone && isOver) restarted(backend, findings.random);
      };
      backend.shutDown(findings.random.size(4_000), () => {
        isGone = true;
        end();
      });
      return () => {
        isOver = true;
        end();
      };
    },
  },
  {
    name: "GOAWAY",
    begin: ({ backend }) => {
      backend.sendAway();
      return none;
    },
  },
  {
    name: "cache lags",
    begin: ({ backend, findings }) => {
      backend.lag(findings.random.size(3_000));
      return () => backend.lag(0);
    },
  },
  {
    name: "cut off from etcd",
    begin: ({ backend }) => {
      backend.cutOff();
      return () => backend.reconnect();
    },
  },
  {
    name: "cache listed again",
    begin: ({ backend }) => {
      backend.relist();
      return none;
    },
  },
  {
    name: "cache initialises",
    begin: ({ backend }) => {
      backend.initialise();
      return () => backend.initialised();
    },
  },
  {
    name: "compaction",
    begin: ({ compact, findings }) => {
      compact(findings.random.size(30));
      return none;
    },
  },
  {
    name: "rights revoked",
    begin: ({ revoked, clients, findings }) => {
      const client = findings.random.pick(clients);
      revoked.add(client);
      return () => revoked.delete(client);
    },
  },
];
