/** What may go wrong with backends and their connections: each begins, lasts for a while and is over. */
import type { Random } from "../random.ts";
import type { SimulatedApiserver } from "./apiserver.ts";
import type { Findings } from "./findings.ts";

export type FaultParts = {
  readonly findings: Findings;
  readonly apiservers: readonly SimulatedApiserver[];
  readonly backend: SimulatedApiserver;
  /** Whose rights come and go. */
  readonly revoked: Set<string>;
  readonly clients: readonly string[];
  /** Everything forgets what happened more than this many versions ago. */
  readonly compact: (keep: number) => void;
};

export type Fault = {
  readonly name: string;
  /** True if it strikes all backends at once. */
  readonly isOfAll?: boolean;
  /** How long it lasts; by default the scene says. */
  readonly ms?: (random: Random) => number;
  /** Returns what ends it. */
  readonly begin: (parts: FaultParts) => () => void;
};

const none = (): void => {};

/** The proxy side of a connection to it, or none. */
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
  // Another fault's end has brought it back.
  if (!backend.host.isDown) return;
  backend.restart(random.chance(0.3) ? random.size(3_000) : 0);
}

/** Every way to every backend has the hole: most likely the proxy's own network (D14). */
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
