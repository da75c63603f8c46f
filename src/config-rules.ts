/** What no schema can say: fields that must agree with each other. Pure. */
import { type Address, isLoopback, parseAddress, parseBackendUrl, textOf } from "./address.ts";
import { passthroughBreaches } from "./config-passthrough.ts";
import type { Written } from "./config-schema.ts";
import { parseDuration } from "./duration.ts";
import { type Breach, quote } from "./problem.ts";

export type Rule = {
  /** JSON pointers to all that it reads, with what is beneath; "*" is every entry of a list. */
  readonly reads: readonly string[];
  readonly breaches: (written: Written) => readonly Breach[];
};

/** A rule of fields that are not what they should be would find anything: it is asked when they are. */
export const rules: readonly Rule[] = [
  { reads: ["/listeners/*/name"], breaches: ({ listeners }) => repeatedNames("/listeners", listeners) },
  {
    reads: ["/upstream/backends/*/name"],
    breaches: ({ upstream }) => repeatedNames("/upstream/backends", upstream.backends ?? []),
  },
  { reads: ["/upstream/backends"], breaches: repeatedUrls },
  {
    reads: ["/upstream/backends/*/name", "/upstream/discovery/fallback/name"],
    breaches: fallbackBreaches,
  },
  {
    reads: ["/listeners/*/address", "/listeners/*/tls", "/listeners/*/mode", "/admin"],
    breaches: listenerBreaches,
  },
  { reads: ["/listeners/*/proxyProtocol"], breaches: proxyProtocolBreaches },
  {
    reads: ["/listeners/*/tls", "/listeners/*/hosts", "/listeners/*/identity", "/upstream/tls"],
    breaches: identityBreaches,
  },
  { reads: ["/listeners", "/upstream/backends", "/upstream/lanes"], breaches: passthroughBreaches },
  {
    reads: ["/listeners/*/address", "/upstream/backends", "/upstream/discovery", "/upstream/tls"],
    breaches: backendBreaches,
  },
  { reads: ["/upstream/discovery", "/upstream/proxyProtocol"], breaches: discoveryBreaches },
  { reads: ["/health/ping"], breaches: pingBreaches },
];

/** All rules' breaches at once, but of those that read what is amiss, by JSON pointers. */
export function checkRules(written: Written, amiss: readonly string[] = []): readonly Breach[] {
  const isAmiss = (read: string): boolean => amiss.some((pointer) => touches(pointer, read));
  return rules.filter(({ reads }) => !reads.some(isAmiss)).flatMap(({ breaches }) => breaches(written));
}

/** Is one of them around, or in, the other? */
function touches(pointer: string, read: string): boolean {
  const [one, other] = [pointer.split("/"), read.split("/")];
  return one.every((part, at) => at >= other.length || other[at] === "*" || other[at] === part);
}

/** Twice the same apiserver: no fault of it could be told from the other's, and each would be asked twice. */
function repeatedUrls({ upstream: { backends = [] } }: Written): Breach[] {
  const places = backends.map(({ url }) => {
    const address = parseBackendUrl(url);
    return address === undefined ? url : textOf(address);
  });
  return backends.flatMap(({ url }, index) => {
    const first = places.indexOf(places[index] ?? "");
    const message = `is ${quote(url)}, which is where backend ${quote(backends[first]?.name)} is`;
    return first < index ? [{ pointer: `/upstream/backends/${index}/url`, message }] : [];
  });
}

function repeatedNames(pointer: string, named: readonly { readonly name: string }[]): Breach[] {
  return named.flatMap(({ name }, index) => {
    const first = named.findIndex((other) => other.name === name);
    const message = `is ${quote(name)} again: entry ${first} has that name`;
    return first < index ? [{ pointer: `${pointer}/${index}/name`, message }] : [];
  });
}

/** Without TLS, bearer tokens would cross the network readable. */
function listenerBreaches(written: Written): Breach[] {
  const taken: Address[] = [];
  const { address: api, metricsAddress } = written.admin;
  const admin = [
    { pointer: "/admin/metricsAddress", text: metricsAddress, isPlainHttp: false },
    { pointer: "/admin/address", text: api, isPlainHttp: true },
  ];
  const listeners = written.listeners.map(({ address, tls, mode }, index) => ({
    pointer: `/listeners/${index}/address`,
    text: address,
    isPlainHttp: tls === undefined && mode === "http",
  }));
  return [...listeners, ...admin].flatMap(({ pointer, text, isPlainHttp }) => {
    const address = parseAddress(text) ?? { host: "", port: 0 };
    const breaches: Breach[] = [];
    if (taken.some((other) => overlaps(other, address)))
      breaches.push({ pointer, message: `is ${quote(text)}, where another listener already stands` });
    if (isPlainHttp && !isLoopback(address.host))
      breaches.push({
        pointer,
        message: `is ${quote(text)}, but without "tls" only loopback may be listened on`,
      });
    taken.push(address);
    return breaches;
  });
}

/** Whoever may name the client's address may name any: nobody is trusted by default. */
function proxyProtocolBreaches({ listeners }: Written): Breach[] {
  return listeners.flatMap(({ proxyProtocol: { mode, trusted } }, index) => {
    const pointer = `/listeners/${index}/proxyProtocol/trusted`;
    if (mode !== "off" && trusted.length === 0)
      return [{ pointer, message: `is empty, but mode ${quote(mode)} needs somebody to trust` }];
    if (mode === "off" && trusted.length > 0)
      return [{ pointer, message: 'has no effect while mode is "off": remove it, or set the mode' }];
    return [];
  });
}

/** Whose certificates count, and with what we vouch for them: one is nothing without the other. */
function identityBreaches({ listeners, upstream }: Written): Breach[] {
  return listeners.flatMap((listener, index) => {
    const pointer = `/listeners/${index}`;
    const hosts = listener.hosts.map((host, at) => ({ host, pointer: `${pointer}/hosts/${at}` }));
    return [
      ...hostBreaches(listener, pointer),
      ...[{ host: listener, pointer }, ...hosts].flatMap((one) => policyBreaches(one, upstream)),
    ];
  });
}

function hostBreaches({ tls, hosts }: Written["listeners"][number], pointer: string): Breach[] {
  if (tls === undefined)
    return hosts.length > 0
      ? [{ pointer: `${pointer}/tls`, message: "is missing: hosts are told apart by TLS" }]
      : [];
  const names = hosts.flatMap(({ names: own }) => own.map((name) => name.toLowerCase()));
  const repeated = names.find((name, at) => names.indexOf(name) !== at);
  if (repeated === undefined) return [];
  return [{ pointer: `${pointer}/hosts`, message: `name ${quote(repeated)} twice` }];
}

type Asked = {
  readonly host: Pick<Written["listeners"][number], "tls" | "identity">;
  readonly pointer: string;
};

function policyBreaches({ host, pointer: at }: Asked, upstream: Written["upstream"]): Breach[] {
  const { clientCerts } = host.identity;
  const pointer = `${at}/tls/clientCAFile`;
  const hasCa = host.tls?.clientCAFile !== undefined;
  if (clientCerts === "reject") {
    const message = 'is of no use while "identity.clientCerts" is "reject"';
    return hasCa ? [{ pointer, message }] : [];
  }
  const message = `is missing: identity.clientCerts ${quote(clientCerts)} needs it`;
  const wanted = clientCerts === "front-proxy" ? "frontProxy" : "impersonator";
  const breaches: Breach[] = hasCa ? [] : [{ pointer, message }];
  if (upstream.tls?.[wanted] === undefined) breaches.push({ pointer: `/upstream/tls/${wanted}`, message });
  return breaches;
}

function backendBreaches(written: Written): Breach[] {
  const own = written.listeners.map(({ address }) => parseAddress(address));
  const { backends = [], discovery, tls } = written.upstream;
  const breaches = backendUrls(written).flatMap(({ url, pointer }) => {
    const address = parseBackendUrl(url);
    if (address === undefined) return [];
    if (!address.isEncrypted && !isLoopback(address.host))
      return [{ pointer, message: `is ${quote(url)}, but http is for loopback addresses only: use https` }];
    const isHere = (one: Address): boolean => isLoopback(address.host) || one.host === address.host;
    const isOwn = own.some((one) => one !== undefined && isHere(one) && overlaps(one, address));
    return isOwn ? [{ pointer, message: `is ${quote(url)}, which is watchkeeper's own listener` }] : [];
  });
  const hasEncrypted = backends.some(({ url }) => parseBackendUrl(url)?.isEncrypted);
  if (hasEncrypted && tls === undefined)
    breaches.push({ pointer: "/upstream/tls/caFile", message: "is missing: backends with https need it" });
  else if (discovery !== undefined && tls === undefined)
    breaches.push({ pointer: "/upstream/tls/caFile", message: "is missing: discovered backends need it" });
  if (backends.length === 0 && discovery === undefined)
    breaches.push({ pointer: "/upstream/backends", message: 'is missing, and so is "discovery"' });
  return breaches;
}

function backendUrls({
  upstream: { backends = [], discovery },
}: Written): { url: string; pointer: string }[] {
  const urls = backends.map(({ url }, index) => ({ url, pointer: `/upstream/backends/${index}/url` }));
  if (discovery?.fallback === undefined) return urls;
  return [...urls, { url: discovery.fallback.url, pointer: "/upstream/discovery/fallback/url" }];
}

/** Names tell backends apart, in the log and in metrics. */
function fallbackBreaches({ upstream: { backends = [], discovery } }: Written): Breach[] {
  const name = discovery?.fallback?.name;
  if (!backends.some((one) => one.name === name)) return [];
  const message = `is ${quote(name)}, which is a listed backend's name`;
  return [{ pointer: "/upstream/discovery/fallback/name", message }];
}

/** What each way of discovery must be told, and what it may be. */
const discoveryFields = {
  dns: { needs: ["name"], takes: ["name", "port"] },
  file: { needs: ["file"], takes: ["file"] },
  endpointslice: { needs: [], takes: ["kubeconfigFile"] },
  leases: { needs: [], takes: ["kubeconfigFile"] },
} as const;

function discoveryBreaches({ upstream: { discovery, proxyProtocol } }: Written): Breach[] {
  if (discovery === undefined) return [];
  const { from, interval: _, fallback: __, ...rest } = discovery;
  // The package that asks Kubernetes opens its own connections.
  if (proxyProtocol !== "off" && (from === "endpointslice" || from === "leases"))
    return [
      {
        pointer: "/upstream/discovery/from",
        message: `is ${quote(from)}, which is asked without the header of "proxyProtocol": use dns or file`,
      },
    ];
  const needs: readonly string[] = discoveryFields[from].needs;
  const takes: readonly string[] = discoveryFields[from].takes;
  const missing = needs.filter((field) => !(field in rest));
  const strange = Object.keys(rest).filter((field) => !takes.includes(field));
  return [
    ...missing.map((field) => ({ field, message: `is missing: discovery from ${quote(from)} needs it` })),
    ...strange.map((field) => ({ field, message: `is not for discovery from ${quote(from)}` })),
  ].map(({ field, message }) => ({ pointer: `/upstream/discovery/${field}`, message }));
}

/** Two addresses that the kernel would not give out both. Port 0 is always another port. */
function overlaps(one: Address, other: Address): boolean {
  if (one.port === 0 || one.port !== other.port) return false;
  return covers(one.host, other.host) || covers(other.host, one.host);
}

/** "::" takes IPv4 as well, "0.0.0.0" nothing else. */
function covers(host: string, other: string): boolean {
  if (host === "::") return true;
  return numeric(host) === numeric(other) || (host === "0.0.0.0" && !other.includes(":"));
}

function numeric(host: string): string {
  return host === "localhost" ? "127.0.0.1" : host;
}

/** A lane must be suspect before it is dead, and asked before it is suspect (design D6). */
function pingBreaches({ health: { ping } }: Written): Breach[] {
  const [interval = 0, suspectAfter = 0, deadAfter = 0] = [
    ping.interval,
    ping.suspectAfter,
    ping.deadAfter,
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
  return breaches;
}
