/** Checks invariants of addresses and networks, in all spellings: of each one, and of two consecutive ones. */
import {
  addressOfOctets,
  isBoundAt,
  isIpAddress,
  isLoopback,
  isNetwork,
  isUnicast,
  networksOf,
  octetsOf,
  overlaps,
  parseAddress,
  parseBackendUrl,
  textOf,
  withoutMapping,
} from "../../src/base/address.ts";
import { same } from "./target.ts";

/** The most words of an input that are used. More would make an input longer without testing anything new. */
const mostWords = 64;
const some = networksOf(["10.0.0.0/8", "fd00::/8"]);

export function checkAddresses(words: readonly string[]): void {
  let before = "127.0.0.1:0";
  for (const word of words.slice(0, mostWords)) {
    checkOctets(word);
    checkListening(word, before);
    checkBackend(word);
    checkNetwork(word);
    before = word;
  }
}

/** Checks that an address survives the conversion to octets and back. */
function checkOctets(word: string): void {
  const octets = octetsOf(word);
  if (octets === undefined) return;
  if (octets.some((octet) => octet < 0 || octet > 255))
    throw new Error(`${word} has the octets ${octets.join()}`);
  const text = addressOfOctets(Uint8Array.from(octets));
  const again = octetsOf(text) ?? [];
  // An IPv4-mapped IPv6 address is converted back to plain IPv4.
  same(word, again, octets.slice(octets.length - again.length));
  same(`${word} is of one host`, isUnicast(word), isUnicast(text));
  same(`${word} is this machine`, isLoopback(word), isLoopback(text));
}

/**
 * Checks that a listening address survives the conversion to text and back, and that it overlaps with itself unless its
 * port is 0 (any port).
 */
function checkListening(word: string, before: string): void {
  const address = parseAddress(word);
  if (address === undefined) return;
  same(word, parseAddress(textOf(address)), address);
  const { host, port } = address;
  const bound = { address: host, port };
  if (!isBoundAt(bound, address)) throw new Error(`${word} is not where it is`);
  if (isBoundAt(null, address) || isBoundAt({ port }, address)) throw new Error(`${word} is nowhere`);
  same(`${word} is in its own way`, overlaps(address, address), port !== 0);
  const other = parseAddress(before);
  if (other !== undefined) same(`${word} and ${before}`, overlaps(address, other), overlaps(other, address));
}

/**
 * Checks that the proxy and the URL parser find the same host, port and path. Zones are omitted, because URL does not accept
 * them.
 */
function checkBackend(word: string): void {
  const backend = parseBackendUrl(word) ?? parseBackendUrl(`https://${word}`);
  if (backend === undefined || backend.host.includes("%")) return;
  const path = backend.path ?? "/";
  const text = `${backend.isEncrypted ? "https" : "http"}://${textOf(backend)}${path}`;
  same(word, parseBackendUrl(text), backend);
  const { hostname, username, pathname, port } = new URL(text);
  same(`${word} elsewhere`, [username, pathname], ["", path]);
  same(`the port of ${word}`, Number(port === "" ? (backend.isEncrypted ? 443 : 80) : port), backend.port);
  const octets = octetsOf(hostname.replace(/^\[(.*)\]$/, "$1"));
  if (isIpAddress(backend.host)) same(`the host that ${word} means`, octets, octetsOf(backend.host));
  else same(`the host that ${word} means`, hostname, backend.host.toLowerCase());
}

/** Checks that a valid network can be matched with any address, and contains its own address. */
function checkNetwork(word: string): void {
  some.has(withoutMapping(word));
  if (!isNetwork(word)) return;
  const [own = ""] = word.split("/");
  const has = networksOf([word]).has(own);
  if (!has && !own.includes("%")) throw new Error(`${word} has not its own address`);
}
