/**
 * Converts and checks `admin.replicas`, which says how to find the other watchkeeper processes. No I/O.
 */
import type { Written } from "../../../config/schema/written.ts";
import { type Address, isLoopback, isUnicast, parseAddress } from "../../base/address.ts";
import { checked, type PathOf } from "./cluster.ts";
import { type Breach, quote } from "./problem.ts";

type WrittenReplicas = NonNullable<Written["admin"]["replicas"]>;

export type ReplicasConfig = {
  /** The replicas' admin addresses; undefined: `name` is resolved. */
  readonly addresses: readonly Address[] | undefined;
  /** The name that resolves to the replicas' addresses, and their port. */
  readonly name: { readonly hostname: string; readonly port: number } | undefined;
  /** How replicas are authenticated; undefined: plain HTTP, which is used on loopback only. */
  readonly tls: ReplicaTls | undefined;
};

export type ReplicaTls = {
  readonly caFile: string;
  /** The name that must be in the replicas' certificates; undefined: the IP address to which the proxy connects. */
  readonly serverName: string | undefined;
};

const usualPort = 7480;

export function replicasOf(written: WrittenReplicas, pathOf: PathOf): ReplicasConfig {
  const { addresses, hostname, port = usualPort, caFile, serverName = hostname } = written;
  return {
    addresses: addresses?.map((address) => checked(parseAddress(address))),
    name: hostname === undefined ? undefined : { hostname, port },
    tls: caFile === undefined ? undefined : { caFile: pathOf(caFile), serverName },
  };
}

/**
 * Finds replicas that are named twice or not at all, and replicas to which the proxy would send callers' tokens in
 * clear text.
 */
export function replicaBreaches({ admin: { replicas, tls } }: Written): Breach[] {
  if (replicas === undefined) return [];
  const { addresses = [], hostname } = replicas;
  if (addresses.length === 0 && hostname === undefined)
    return [{ pointer: "/admin/replicas", message: 'needs "addresses" or "hostname"' }];
  const hasTls = tls !== undefined;
  return [
    ...nameBreaches(replicas, hasTls),
    ...addresses.flatMap((text, index) =>
      addressBreach(text, addresses.indexOf(text) < index, hasTls, index),
    ),
    ...tlsBreaches(replicas, hasTls),
  ];
}

const clearText = 'but without "admin.tls" only replicas on loopback may be asked';

const breach = (field: string, message: string): Breach => ({ pointer: `/admin/replicas/${field}`, message });

function nameBreaches({ addresses, hostname, port }: WrittenReplicas, hasTls: boolean): Breach[] {
  if (hostname === undefined) return port === undefined ? [] : [breach("port", 'needs "hostname"')];
  if (addresses !== undefined) return [breach("hostname", 'has no effect beside "addresses"')];
  const isSafe = hasTls || isLoopback(hostname);
  return isSafe ? [] : [breach("hostname", `is ${quote(hostname)}, ${clearText}`)];
}

function addressBreach(text: string, isRepeated: boolean, hasTls: boolean, index: number): Breach[] {
  const { host, port } = parseAddress(text) ?? { host: "", port: 0 };
  const told = (problem: string): Breach[] => [breach(`addresses/${index}`, `is ${quote(text)}, ${problem}`)];
  if (!isUnicast(host) || port === 0) return told("which is not the address of one process");
  if (isRepeated) return told("which is listed already");
  return hasTls || isLoopback(host) ? [] : told(clearText);
}

function tlsBreaches({ caFile, serverName }: WrittenReplicas, hasTls: boolean): Breach[] {
  if (hasTls) return caFile === undefined ? [breach("caFile", 'is missing: "admin.tls" is set')] : [];
  return Object.entries({ caFile, serverName })
    .filter(([, value]) => value !== undefined)
    .map(([field]) => breach(field, 'has no effect without "admin.tls"'));
}
