import type { Written } from "../../../config/schema/written.ts";
import {
  type Address,
  isLoopback,
  overlaps,
  parseAddress,
  parseBackendUrl,
  textOf,
} from "../../base/address.ts";
import { type Breach, quote, repeatedNames } from "./problem.ts";
import type { Placed } from "./schema.ts";

/** Finds an apiserver that is listed twice, because probes and metrics would count it as two backends. */
export function repeatedUrls({ cluster: { backends = [] }, pointer }: Placed): Breach[] {
  const places = backends.map(({ url }) => {
    const address = parseBackendUrl(url);
    return address === undefined ? url : textOf(address);
  });
  return backends.flatMap(({ url }, index) => {
    const first = places.indexOf(places[index] ?? "");
    const message = `is ${quote(url)}, which is already the URL of backend ${quote(backends[first]?.name)}`;
    return first < index ? [{ pointer: `${pointer}/backends/${index}/url`, message }] : [];
  });
}

export function backendBreaches(placed: Placed, written: Written): Breach[] {
  const own = written.listeners.map(({ address }) => parseAddress(address));
  const { cluster, pointer: at } = placed;
  const { backends = [], discovery, tls } = cluster;
  const urls = backendUrls(placed);
  const first = parseBackendUrl(urls[0]?.url ?? "");
  const breaches = urls.flatMap(({ url, pointer }) => {
    const address = parseBackendUrl(url);
    if (address === undefined) return [];
    if (address.path !== (discovery === undefined ? first?.path : undefined)) {
      const rule =
        discovery === undefined ? "all backends of a cluster need the same path" : "discovery takes no path";
      return [{ pointer, message: `is ${quote(url)}, but ${rule}` }];
    }
    if (!address.isEncrypted && !isLoopback(address.host))
      return [{ pointer, message: `is ${quote(url)}, but http is for loopback addresses only: use https` }];
    const isHere = (one: Address): boolean => isLoopback(address.host) || one.host === address.host;
    const isOwn = own.some((one) => one !== undefined && isHere(one) && overlaps(one, address));
    return isOwn ? [{ pointer, message: `is ${quote(url)}, which is watchkeeper's own listener` }] : [];
  });
  const hasEncrypted = backends.some(({ url }) => parseBackendUrl(url)?.isEncrypted);
  if (hasEncrypted && tls === undefined)
    breaches.push({ pointer: `${at}/tls/caFile`, message: "is missing: backends with https need it" });
  else if (discovery !== undefined && tls === undefined)
    breaches.push({ pointer: `${at}/tls/caFile`, message: "is missing: discovered backends need it" });
  if (backends.length === 0 && discovery === undefined)
    breaches.push({ pointer: `${at}/backends`, message: 'is missing, and so is "discovery"' });
  return breaches;
}

function backendUrls({
  cluster: { backends = [], discovery },
  pointer: at,
}: Placed): { url: string; pointer: string }[] {
  const urls = backends.map(({ url }, index) => ({ url, pointer: `${at}/backends/${index}/url` }));
  if (discovery?.fallback === undefined) return urls;
  return [...urls, { url: discovery.fallback.url, pointer: `${at}/discovery/fallback/url` }];
}

export function repeatedBackends({ cluster: { backends = [] }, pointer: at }: Placed): Breach[] {
  return repeatedNames(`${at}/backends`, backends);
}

/** Finds a fallback that has the name of a listed backend, because logs and metrics distinguish backends by name. */
export function fallbackBreaches({ cluster: { backends = [], discovery }, pointer: at }: Placed): Breach[] {
  const name = discovery?.fallback?.name;
  if (!backends.some((one) => one.name === name)) return [];
  const message = `is ${quote(name)}, which is a listed backend's name`;
  return [{ pointer: `${at}/discovery/fallback/name`, message }];
}

const discoveryFields = {
  DNS: { needs: ["hostname"], takes: ["hostname", "port"] },
  File: { needs: ["file"], takes: ["file"] },
  EndpointSlice: { needs: [], takes: ["kubeconfigFile"] },
  Lease: { needs: [], takes: ["kubeconfigFile"] },
} as const;

export function discoveryBreaches({ cluster: { discovery, proxyProtocol }, pointer: at }: Placed): Breach[] {
  if (discovery === undefined) return [];
  const { type, interval: _, fallback: __, ...rest } = discovery;
  // These types are rejected together with `proxyProtocol`, because their discovery opens its own connections, which
  // have no PROXY header.
  if (proxyProtocol !== undefined && (type === "EndpointSlice" || type === "Lease"))
    return [
      {
        pointer: `${at}/discovery/type`,
        message: `is ${quote(type)}, which is queried without the header of "proxyProtocol": use DNS or File`,
      },
    ];
  const needs: readonly string[] = discoveryFields[type].needs;
  const takes: readonly string[] = discoveryFields[type].takes;
  const missing = needs.filter((field) => !(field in rest));
  const strange = Object.keys(rest).filter((field) => !takes.includes(field));
  return [
    ...missing.map((field) => ({ field, message: `is missing: discovery of type ${quote(type)} needs it` })),
    ...strange.map((field) => ({ field, message: `is not for discovery of type ${quote(type)}` })),
  ].map(({ field, message }) => ({ pointer: `${at}/discovery/${field}`, message }));
}
