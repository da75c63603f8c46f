/** What no schema can say: fields that must agree with each other. Pure. */
import { type Address, isLoopback, parseAddress, parseBackendUrl } from "./address.ts";
import type { Written } from "./config-schema.ts";
import { parseDuration } from "./duration.ts";
import { quote } from "./problem.ts";

/** A problem whose place is still a JSON pointer. */
export type Breach = { readonly pointer: string; readonly message: string };

/** All rules' breaches at once. `written` has passed the schema. */
export function checkRules(written: Written): readonly Breach[] {
  return [
    ...repeatedNames("/listeners", written.listeners),
    ...repeatedNames("/upstream/backends", written.upstream.backends),
    ...listenerBreaches(written),
    ...backendBreaches(written),
    ...pingBreaches(written),
  ];
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
  const admin = { pointer: "/admin/metricsAddress", text: written.admin.metricsAddress, isPlainHttp: false };
  const listeners = written.listeners.map(({ address, tls }, index) => ({
    pointer: `/listeners/${index}/address`,
    text: address,
    isPlainHttp: tls === undefined,
  }));
  return [...listeners, admin].flatMap(({ pointer, text, isPlainHttp }) => {
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

function backendBreaches(written: Written): Breach[] {
  const own = written.listeners.map(({ address }) => parseAddress(address));
  const breaches = written.upstream.backends.flatMap(({ url }, index) => {
    const pointer = `/upstream/backends/${index}/url`;
    const address = parseBackendUrl(url);
    if (address === undefined) return [];
    if (!address.isEncrypted && !isLoopback(address.host))
      return [{ pointer, message: `is ${quote(url)}, but http is for loopback addresses only: use https` }];
    const isHere = (one: Address): boolean => isLoopback(address.host) || one.host === address.host;
    const isOwn = own.some((one) => one !== undefined && isHere(one) && overlaps(one, address));
    return isOwn ? [{ pointer, message: `is ${quote(url)}, which is watchkeeper's own listener` }] : [];
  });
  const hasEncrypted = written.upstream.backends.some(({ url }) => parseBackendUrl(url)?.isEncrypted);
  if (hasEncrypted && written.upstream.tls === undefined)
    breaches.push({ pointer: "/upstream/tls/caFile", message: "is missing: backends with https need it" });
  return breaches;
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
