import { BlockList, isIP, SocketAddress } from "node:net";

export type Address = { readonly host: string; readonly port: number };

export type BackendAddress = Address & {
  readonly isEncrypted: boolean;
  /** The path below which the apiserver is served, such as "/k8s/clusters/c-1"; undefined: at the root. */
  readonly path?: string;
};

function portOf(text: string): number | undefined {
  const port = Number(text);
  return /^\d{1,5}$/.test(text) && port <= 65_535 ? port : undefined;
}

function hostOf(text: string): string | undefined {
  const inner = /^\[(.*)\]$/.exec(text)?.[1];
  if (inner !== undefined) return isIP(inner) === 6 ? inner : undefined;
  return isHost(text) && isIP(text) !== 6 ? text : undefined;
}

export function isIpAddress(text: string): boolean {
  return isIP(text) !== 0;
}

export function isHost(text: string): boolean {
  if (isIpAddress(text)) return true;
  const labels = text.split(".");
  // The last label must begin with a letter, because some resolvers read "0177.1" or "0x7f.1" as an IPv4 address.
  return (
    text.length <= 253 &&
    /^[a-z]/i.test(labels.at(-1) ?? "") &&
    labels.every((label) => /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/i.test(label))
  );
}

/**
 * Parses a listen address: "127.0.0.1:8443", or ":8443" for "[::]:8443". Rejects host names, including "localhost",
 * because a name may resolve to several addresses, and a socket would bind only one of them.
 */
export function parseAddress(text: string): Address | undefined {
  const colon = text.lastIndexOf(":");
  const host = colon === 0 ? "::" : hostOf(text.slice(0, Math.max(colon, 0)));
  const port = portOf(text.slice(colon + 1));
  if (host === undefined || port === undefined) return undefined;
  return isIpAddress(host) ? { host, port } : undefined;
}

/** True if `bound`, which Node reports for a listening socket, is the given address. Port 0 matches any port. */
export function isBoundAt(bound: unknown, { host, port }: Address): boolean {
  if (typeof bound !== "object" || bound === null || !("address" in bound) || !("port" in bound))
    return false;
  return bound.address === host && (port === 0 || bound.port === port);
}

/**
 * Parses a URL that consists of scheme, host, port and a plain path. Rejects a user, a query, and "https:10.1", which
 * Node's `URL` accepts (A57).
 */
export function parseBackendUrl(text: string): BackendAddress | undefined {
  const [, scheme, host = "", port, path] =
    /^(https?):\/\/(\[[^\]]*\]|[^:/?#@[\]\\]*)(?::(\d+))?((?:\/[\w~-][\w.~-]*)+)?\/?$/i.exec(text) ?? [];
  const isEncrypted = scheme?.toLowerCase() === "https";
  const checkedHost = hostOf(host);
  const checkedPort = port === undefined ? (isEncrypted ? 443 : 80) : portOf(port);
  if (scheme === undefined || checkedHost === undefined || !checkedPort) return undefined;
  return { isEncrypted, host: checkedHost, port: checkedPort, ...(path === undefined ? {} : { path }) };
}

export function textOf({ host, port }: Address): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

export function isLoopback(host: string): boolean {
  return host === "localhost" || loopback.check(host, isIP(host) === 6 ? "ipv6" : "ipv4");
}

/** Returns an IP address as 4 or 16 bytes; undefined for other text and for an address with a zone ("%eth0"). */
export function octetsOf(address: string): readonly number[] | undefined {
  const family = address.includes("%") ? 0 : isIP(address);
  if (family === 4) return address.split(".").map(Number);
  return family === 6 ? octetsOfV6(address) : undefined;
}

function octetsOfV6(address: string): readonly number[] {
  // If the last 32 bits are written as IPv4 (RFC 4291 §2.2), rewrites them as two hexadecimal groups.
  const groups = address
    .replace(/(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/, (_, ...octets) => {
      const [a = 0, b = 0, c = 0, d = 0] = octets.slice(0, 4).map(Number);
      return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
    })
    .split("::")
    .map((half) => (half === "" ? [] : half.split(":").map((group) => Number.parseInt(group, 16))));
  const [high = [], low = []] = groups;
  const gap = Array.from({ length: groups.length === 1 ? 0 : 8 - high.length - low.length }, () => 0);
  return [...high, ...gap, ...low].flatMap((group) => [group >> 8, group & 0xff]);
}

/** Returns the text of a 4- or 16-byte address as Node's sockets report it. */
export function addressOfOctets(octets: Uint8Array): string {
  if (octets.length === 4) return octets.join(".");
  const groups = Array.from({ length: 8 }, (_, at) =>
    (((octets[2 * at] ?? 0) << 8) | (octets[2 * at + 1] ?? 0)).toString(16),
  );
  const { address } = new SocketAddress({ address: groups.join(":"), family: "ipv6" });
  return withoutMapping(address);
}

/** Returns "10.0.0.1" for "::ffff:10.0.0.1", which is how a dual-stack socket reports an IPv4 peer. */
export function withoutMapping(address: string): string {
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice("::ffff:".length) : address;
}

/**
 * True if the address can belong to a single host. False for unspecified, multicast and link-local addresses;
 * link-local addresses include the metadata services of clouds.
 */
export function isUnicast(address: string): boolean {
  const family = isIP(address);
  return family !== 0 && !noHost.check(address, family === 6 ? "ipv6" : "ipv4");
}

export type Networks = { has(address: string): boolean };

/** Returns a set of networks in CIDR notation. "10.0.0.0/8" also contains "::ffff:10.1.2.3". */
export function networksOf(texts: readonly string[]): Networks {
  const list = new BlockList();
  for (const text of texts) {
    const [address = "", prefix] = text.split("/");
    list.addSubnet(address, Number(prefix), isIP(address) === 6 ? "ipv6" : "ipv4");
  }
  return {
    has: (address) => isIpAddress(address) && list.check(address, isIP(address) === 6 ? "ipv6" : "ipv4"),
  };
}

export function isNetwork(text: string): boolean {
  const [address = "", prefix = "", ...rest] = text.split("/");
  const family = isIP(address);
  if (family === 0 || rest.length > 0 || !/^\d{1,3}$/.test(prefix)) return false;
  return Number(prefix) <= (family === 6 ? 128 : 32);
}

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

const noHost = new BlockList();
noHost.addSubnet("0.0.0.0", 8, "ipv4");
noHost.addSubnet("169.254.0.0", 16, "ipv4");
noHost.addSubnet("224.0.0.0", 3, "ipv4");
noHost.addAddress("::", "ipv6");
noHost.addSubnet("fe80::", 10, "ipv6");
noHost.addSubnet("ff00::", 8, "ipv6");

/**
 * True if the kernel would not bind both addresses at the same time. Port 0 never conflicts, because the kernel chooses
 * a free port for it.
 */
export function overlaps(one: Address, other: Address): boolean {
  if (one.port === 0 || one.port !== other.port) return false;
  return covers(one.host, other.host) || covers(other.host, one.host);
}

/** True if a socket that is bound to `host` also accepts connections to `other`: "::" accepts IPv4 as well. */
function covers(host: string, other: string): boolean {
  if (host === "::") return true;
  return host === other || (host === "0.0.0.0" && !other.includes(":"));
}
