/** The proxy between the clients and the apiservers: watchkeeper, or a rival. */
import type { Cluster } from "../rig/cluster.ts";
import { Proxy } from "../rig/proxy.ts";
import { RunningRival, rivals } from "./rivals.ts";

export const kinds = ["watchkeeper", "haproxy", "envoy"] as const;
export type Kind = (typeof kinds)[number];

export type Through = {
  readonly url: string;
  readonly isRunning: boolean;
  /** The proxy's log file; "" if it has none. */
  readonly logFile: string;
  /** Resolves when the proxy uses `count` apiservers. */
  settled(count: number, ms?: number): Promise<void>;
  stop(): Promise<unknown>;
};

/** Returns what this machine lacks for the proxy; undefined if nothing. */
export function lackedBy(kind: Kind): string | undefined {
  return kind === "watchkeeper" ? undefined : rivals[kind].missing();
}

export function startThrough(kind: Kind, cluster: Cluster): Promise<Through> {
  if (kind !== "watchkeeper") return RunningRival.start(kind, cluster);
  const { folder, pki, apiservers } = cluster;
  const backends = apiservers.map(({ name, url }) => ({ name, url }));
  return Proxy.start({ folder, pki, backends });
}
