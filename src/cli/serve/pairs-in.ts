/** Every certificate with its key that a configuration names, as the log and the metrics call it. Pure. */

import type { ClusterConfig, PairFiles } from "../../config/cluster.ts";
import type { Config, ListenerConfig } from "../../config/config.ts";

export type NamedPair = {
  /** "listener", "host", or "" where the name says it all. */
  readonly what: "listener" | "host" | "";
  readonly name: string;
  /** Of a host: those by which its clients ask for it. */
  readonly names?: readonly string[];
  /** Of a listener or a host with the CA of its clients, which has to be good as well. */
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

/** Those with which we vouch for clients. */
function clientPairs({ tls }: ClusterConfig, prefix: string): readonly NamedPair[] {
  const { frontProxy, impersonator } = tls ?? {};
  const named = [
    { name: `${prefix}front-proxy`, files: frontProxy },
    { name: `${prefix}impersonator`, files: impersonator },
  ];
  return named.flatMap(({ name, files }) => (files === undefined ? [] : [{ what: "", name, files }]));
}
