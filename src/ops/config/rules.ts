/** The rules that a schema cannot express, because they compare several fields. No I/O. */
import type { Written, WrittenListener } from "../../../config/schema/written.ts";
import { type Address, isLoopback, overlaps, parseAddress } from "../../base/address.ts";
import { parseDuration } from "../../base/duration.ts";
import { adminBreaches } from "./admin.ts";
import {
  backendBreaches,
  discoveryBreaches,
  fallbackBreaches,
  repeatedBackends,
  repeatedUrls,
} from "./cluster-rules.ts";
import { limitBreaches, scopeBreaches } from "./limit.ts";
import { passthroughBreaches } from "./passthrough.ts";
import { type Breach, quote, repeatedNames } from "./problem.ts";
import { replicaBreaches } from "./replicas.ts";
import { clusterFor, type Placed, placedClusters, type Reference, referenceBreach } from "./schema.ts";

export type Rule = {
  /** JSON pointers to the fields that the rule reads; "*" matches every entry of a list. */
  readonly reads: readonly string[];
  readonly breaches: (written: Written) => readonly Breach[];
};

const each =
  (breaches: (placed: Placed, written: Written) => readonly Breach[]): Rule["breaches"] =>
  (written) =>
    placedClusters(written).flatMap((placed) => breaches(placed, written));

/** All rules. A rule runs only if the fields that it reads are valid. */
export const rules: readonly Rule[] = [
  { reads: ["/listeners/*/name"], breaches: ({ listeners }) => repeatedNames("/listeners", listeners) },
  { reads: ["/clusters/*/name"], breaches: ({ clusters }) => repeatedNames("/clusters", clusters) },
  {
    reads: [
      "/listeners/*/cluster",
      "/listeners/*/mode",
      "/listeners/*/hosts",
      "/listeners/*/routes",
      "/clusters/*/name",
    ],
    breaches: referenceBreaches,
  },
  { reads: ["/clusters/*/backends/*/name"], breaches: each(repeatedBackends) },
  { reads: ["/clusters/*/backends"], breaches: each(repeatedUrls) },
  {
    reads: ["/clusters/*/backends/*/name", "/clusters/*/discovery/fallback/name"],
    breaches: each(fallbackBreaches),
  },
  {
    reads: ["/listeners/*/address", "/listeners/*/tls", "/listeners/*/mode", "/admin"],
    breaches: listenerBreaches,
  },
  {
    reads: ["/admin", "/clusters/*/name", "/clusters/*/tls"],
    breaches: adminBreaches,
  },
  { reads: ["/admin"], breaches: replicaBreaches },
  { reads: ["/listeners/*/proxyProtocol"], breaches: proxyProtocolBreaches },
  {
    reads: ["/listeners/*/tls", "/listeners/*/hosts", "/listeners/*/identity", "/clusters/*/tls"],
    breaches: identityBreaches,
  },
  {
    reads: ["/listeners", "/clusters/*/backends", "/clusters/*/connectionPool"],
    breaches: passthroughBreaches,
  },
  {
    reads: ["/listeners/*/address", "/clusters/*/backends", "/clusters/*/discovery", "/clusters/*/tls"],
    breaches: each(backendBreaches),
  },
  {
    reads: ["/clusters/*/discovery", "/clusters/*/proxyProtocol"],
    breaches: each(discoveryBreaches),
  },
  {
    reads: ["/clusters/*/limits"],
    breaches: each((placed) => [
      ...repeatedNames(`${placed.pointer}/limits`, placed.cluster.limits ?? []),
      ...limitBreaches(placed),
    ]),
  },
  { reads: ["/clusters/*/limits", "/admin/replicas"], breaches: each(scopeBreaches) },
  { reads: ["/health/ping"], breaches: pingBreaches },
];

/** Checks the rules, except those that read an invalid field. `invalid`: JSON pointers to the invalid fields. */
export function checkRules(written: Written, invalid: readonly string[] = []): readonly Breach[] {
  const isInvalid = (read: string): boolean => invalid.some((pointer) => isOneInsideOther(pointer, read));
  return rules.filter(({ reads }) => !reads.some(isInvalid)).flatMap(({ breaches }) => breaches(written));
}

function isOneInsideOther(pointer: string, read: string): boolean {
  const [one, other] = [pointer.split("/"), read.split("/")];
  return one.every((part, at) => at >= other.length || other[at] === "*" || other[at] === part);
}

function referenceBreaches(written: Written): Breach[] {
  return written.listeners.flatMap((listener, index) => {
    const pointer = `/listeners/${index}`;
    const { cluster, hosts, routes = [] } = listener;
    return [
      ...ownReferenceBreaches({ pointer, cluster }, listener, written),
      ...hosts.flatMap((host, at) =>
        referenceBreach({ ...host, pointer: `${pointer}/hosts/${at}` }, written),
      ),
      ...routes.flatMap((route, at) =>
        referenceBreach({ ...route, pointer: `${pointer}/routes/${at}` }, written),
      ),
    ];
  });
}

/**
 * Finds a listener's `cluster` that does not exist, and a `cluster` beside `routes`, where each route names its own
 * cluster.
 */
function ownReferenceBreaches(own: Reference, { mode, routes }: WrittenListener, written: Written): Breach[] {
  if (mode !== "Passthrough" || routes === undefined) return referenceBreach(own, written);
  if (own.cluster === undefined) return [];
  return [
    { pointer: `${own.pointer}/cluster`, message: 'has no effect beside "routes": each route names its own' },
  ];
}

/**
 * Finds a listen address that is used twice, and plain HTTP on an address other than loopback, where clients would send
 * bearer tokens in clear text.
 */
function listenerBreaches(written: Written): Breach[] {
  const taken: Address[] = [];
  const { address: api, metricsAddress } = written.admin;
  const admin = [
    { pointer: "/admin/metricsAddress", text: metricsAddress, isPlainHttp: false },
    { pointer: "/admin/address", text: api, isPlainHttp: false },
  ];
  const listeners = written.listeners.map(({ address, tls, mode }, index) => ({
    pointer: `/listeners/${index}/address`,
    text: address,
    isPlainHttp: tls === undefined && mode === "HTTP",
  }));
  return [...listeners, ...admin].flatMap(({ pointer, text, isPlainHttp }) => {
    const address = parseAddress(text) ?? { host: "", port: 0 };
    const breaches: Breach[] = [];
    if (taken.some((other) => overlaps(other, address)))
      breaches.push({ pointer, message: `is ${quote(text)}, which another listener already uses` });
    if (isPlainHttp && !isLoopback(address.host))
      breaches.push({
        pointer,
        message: `is ${quote(text)}, but without "tls" only loopback may be listened on`,
      });
    taken.push(address);
    return breaches;
  });
}

/**
 * Finds listeners that accept PROXY headers but name no trusted networks. Any client could then claim any source
 * address.
 */
function proxyProtocolBreaches({ listeners }: Written): Breach[] {
  return listeners.flatMap(({ proxyProtocol: { mode, trustedCIDRs } }, index) => {
    const pointer = `/listeners/${index}/proxyProtocol/trustedCIDRs`;
    if (mode === "Disabled" || trustedCIDRs.length > 0) return [];
    return [{ pointer, message: `is empty, but mode ${quote(mode)} needs at least one network` }];
  });
}

/** Finds repeated server names, identity policies that lack a file, and CA bundles without effect. */
function identityBreaches(written: Written): Breach[] {
  return written.listeners.flatMap((listener, index) => {
    const pointer = `/listeners/${index}`;
    const hosts = listener.hosts.map((host, at) => ({ host, pointer: `${pointer}/hosts/${at}` }));
    return [
      ...hostBreaches(listener, pointer),
      ...[{ host: listener, pointer }, ...hosts].flatMap((one) =>
        policyBreaches(one, clusterFor(written, one.host.cluster)),
      ),
    ];
  });
}

function hostBreaches({ tls, hosts }: WrittenListener, pointer: string): Breach[] {
  if (tls === undefined)
    return hosts.length > 0
      ? [{ pointer: `${pointer}/tls`, message: "is missing: hosts are selected by TLS server name" }]
      : [];
  const names = hosts.flatMap(({ serverNames: own }) => own.map((name) => name.toLowerCase()));
  const repeated = names.find((name, at) => names.indexOf(name) !== at);
  if (repeated === undefined) return [];
  return [{ pointer: `${pointer}/hosts`, message: `name ${quote(repeated)} twice` }];
}

type CertificateHost = {
  readonly host: Pick<WrittenListener, "tls" | "identity" | "cluster">;
  readonly pointer: string;
};

/** Checks the identity policy of one host. `placed`: the host's cluster; undefined if the file has no such cluster. */
function policyBreaches({ host, pointer: at }: CertificateHost, placed: Placed | undefined): Breach[] {
  const { clientCerts } = host.identity;
  const pointer = `${at}/tls/clientCAFile`;
  const hasCa = host.tls?.clientCAFile !== undefined;
  if (clientCerts === "Reject") {
    const message = 'has no effect while "identity.clientCerts" is "Reject"';
    return hasCa ? [{ pointer, message }] : [];
  }
  const message = `is missing: identity.clientCerts ${quote(clientCerts)} needs it`;
  const wanted = clientCerts === "FrontProxy" ? "frontProxy" : "impersonator";
  const breaches: Breach[] = hasCa ? [] : [{ pointer, message }];
  if (placed !== undefined && placed.cluster.tls?.[wanted] === undefined)
    breaches.push({ pointer: `${placed.pointer}/tls/${wanted}`, message });
  return breaches;
}

/**
 * Finds PING times in the wrong order. On a silent connection, the proxy must first send a PING, then treat the
 * connection as suspect, and then as dead (D6).
 */
function pingBreaches({ health: { ping } }: Written): Breach[] {
  const [interval = 0, suspectAfter = 0, deadAfter = 0, deadAfterWhenAllSilent = 0] = [
    ping.interval,
    ping.suspectAfter,
    ping.deadAfter,
    ping.deadAfterWhenAllSilent,
  ].map((text) => parseDuration(text));
  const breaches: Breach[] = [];
  if (suspectAfter < interval)
    breaches.push({
      pointer: "/health/ping/suspectAfter",
      message: `is ${quote(ping.suspectAfter)}, shorter than the interval of ${quote(ping.interval)}`,
    });
  if (deadAfter <= suspectAfter)
    breaches.push({
      pointer: "/health/ping/deadAfter",
      message: `is ${quote(ping.deadAfter)}, not longer than suspectAfter's ${quote(ping.suspectAfter)}`,
    });
  if (deadAfterWhenAllSilent < deadAfter)
    breaches.push({
      pointer: "/health/ping/deadAfterWhenAllSilent",
      message: `is ${quote(ping.deadAfterWhenAllSilent)}, shorter than deadAfter's ${quote(ping.deadAfter)}`,
    });
  return breaches;
}
