/** Returns every certificate and key that a configuration names, with its name in the log and the metrics. Pure. */

import type { ClusterConfig, PairFiles } from "../../config/cluster.ts";
import type { Config, ListenerConfig } from "../../config/config.ts";

export type NamedPair = {
  /** "listener", "host", or "" where the name is enough. */
  readonly what: "listener" | "host" | "";
  readonly name: string;
  /** A host's SNI names. */
  readonly names?: readonly string[];
  /** For a listener or a host, includes the CA bundle that verifies clients, which must be valid as well. */
  readonly files: PairFiles & { readonly clientCaFile?: string | undefined };
};

export function pairsIn({ listeners, clusters, admin }: Config): readonly NamedPair[] {
  const own = admin.tls === undefined ? [] : [{ what: "" as const, name: "admin", files: admin.tls }];
  return [
    ...listeners.flatMap((listener) => servingPairs(listener)),
    ...clusters.flatMap((cluster) => clientPairs(cluster, clusters.length > 1 ? `${cluster.name}/` : "")),
    ...own,
  ];
}

function servingPairs({ name, tls, hosts }: ListenerConfig): readonly NamedPair[] {
  if (tls === undefined) return [];
  const ofHosts = hosts.map(({ serverNames: names, tls: files }) => ({
    what: "host" as const,
    name: `${name}/${names[0] ?? ""}`,
    names,
    files,
  }));
  return [{ what: "listener", name, files: tls }, ...ofHosts];
}

/** Certificates that the proxy presents to backends on behalf of clients. */
function clientPairs({ tls }: ClusterConfig, prefix: string): readonly NamedPair[] {
  const { frontProxy, impersonator } = tls ?? {};
  const named = [
    { name: `${prefix}front-proxy`, files: frontProxy },
    { name: `${prefix}impersonator`, files: impersonator },
  ];
  return named.flatMap(({ name, files }) => (files === undefined ? [] : [{ what: "", name, files }]));
}
