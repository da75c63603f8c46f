/**
 * Addresses as an operator writes them. No name is looked up here: node:net only says what is an IP address.
 */
import { BlockList, isIP } from "node:net";

/** Where to listen, or whom to dial. An IPv6 host has no brackets. */
export type Address = { readonly host: string; readonly port: number };

/** Where a backend is. */
export type BackendAddress = Address & { readonly isEncrypted: boolean };

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

/** A DNS name or an IP address. */
export function isHost(text: string): boolean {
  if (isIpAddress(text)) return true;
  const labels = text.split(".");
  // A last label that starts with a digit would be read as an IPv4 address in disguise ("0177.1", "0x7f.1").
  return (
    text.length <= 253 &&
    /^[a-z]/i.test(labels.at(-1) ?? "") &&
    labels.every((label) => /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/i.test(label))
  );
}

/** "127.0.0.1:8443", "[::]:8443" or "localhost:0"; other names are refused, since they may mean several sockets. */
export function parseAddress(text: string): Address | undefined {
  const colon = text.lastIndexOf(":");
  const host = hostOf(text.slice(0, Math.max(colon, 0)));
  const port = portOf(text.slice(colon + 1));
  if (host === undefined || port === undefined) return undefined;
  return isIpAddress(host) || host === "localhost" ? { host, port } : undefined;
}

/** Scheme, host and port and nothing else: what URL would tolerate (a user, a path, "https:10.1") is refused (A57). */
export function parseBackendUrl(text: string): BackendAddress | undefined {
  const [, scheme, host = "", port] =
    /^(https?):\/\/(\[[^\]]*\]|[^:/?#@[\]\\]*)(?::(\d+))?\/?$/i.exec(text) ?? [];
  const isEncrypted = scheme?.toLowerCase() === "https";
  const checkedHost = hostOf(host);
  const checkedPort = port === undefined ? (isEncrypted ? 443 : 80) : portOf(port);
  if (scheme === undefined || checkedHost === undefined || !checkedPort) return undefined;
  return { isEncrypted, host: checkedHost, port: checkedPort };
}

export function isLoopback(host: string): boolean {
  return host === "localhost" || loopback.check(host, isIP(host) === 6 ? "ipv6" : "ipv4");
}

/** A set of networks, as lists of trusted forwarders need it. */
export type Networks = { has(address: string): boolean };

/** Every text must have passed `isNetwork`. An IPv4 client of an IPv6 socket ("::ffff:10.1.2.3") is found in "10.0.0.0/8". */
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

/** CIDR form: "10.0.0.0/8" or "fd00::/8". */
export function isNetwork(text: string): boolean {
  const [address = "", prefix = "", ...rest] = text.split("/");
  const family = isIP(address);
  if (family === 0 || rest.length > 0 || !/^\d{1,3}$/.test(prefix)) return false;
  return Number(prefix) <= (family === 6 ? 128 : 32);
}

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");
