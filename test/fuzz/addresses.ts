/** Addresses and networks, in all spellings: what must hold for each, and for two beside each other. */
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

/** Beyond that an input is long, not new. */
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

/** What is an address comes back as it was, from its octets. */
function checkOctets(word: string): void {
  const octets = octetsOf(word);
  if (octets === undefined) return;
  if (octets.some((octet) => octet < 0 || octet > 255))
    throw new Error(`${word} has the octets ${octets.join()}`);
  const text = addressOfOctets(Uint8Array.from(octets));
  const again = octetsOf(text) ?? [];
  // An IPv4 address that was mapped comes back unmapped.
  same(word, again, octets.slice(octets.length - again.length));
  same(`${word} is of one host`, isUnicast(word), isUnicast(text));
  same(`${word} is this machine`, isLoopback(word), isLoopback(text));
}

/** It comes back from its text, and is in its own way unless it is any port. */
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

/** The proxy would dial the same host as any other reader of URLs (a zone it does not know at all). */
function checkBackend(word: string): void {
  const backend = parseBackendUrl(word) ?? parseBackendUrl(`https://${word}`);
  if (backend === undefined || backend.host.includes("%")) return;
  const text = `${backend.isEncrypted ? "https" : "http"}://${textOf(backend)}`;
  same(word, parseBackendUrl(text), backend);
  const { hostname, username, pathname, port } = new URL(text);
  same(`${word} elsewhere`, [username, pathname], ["", "/"]);
  same(`the port of ${word}`, Number(port === "" ? (backend.isEncrypted ? 443 : 80) : port), backend.port);
  const octets = octetsOf(hostname.replace(/^\[(.*)\]$/, "$1"));
  if (isIpAddress(backend.host)) same(`the host that ${word} means`, octets, octetsOf(backend.host));
  else same(`the host that ${word} means`, hostname, backend.host.toLowerCase());
}

/** What passes as a network can be asked for any address, and has its own. */
function checkNetwork(word: string): void {
  some.has(withoutMapping(word));
  if (!isNetwork(word)) return;
  const [own = ""] = word.split("/");
  const has = networksOf([word]).has(own);
  if (!has && !own.includes("%")) throw new Error(`${word} has not its own address`);
}
