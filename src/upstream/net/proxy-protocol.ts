/**
 * The PROXY protocol, versions 1 and 2 (haproxy.org/download/3.2/doc/proxy-protocol.txt): a header that a load balancer
 * sends before the client's own bytes, with the client's address. The proxy reads such headers from load balancers in
 * front of it, and writes them to backends behind a load balancer. The TLVs of version 2 are ignored.
 */
import { addressOfOctets, octetsOf } from "../../base/address.ts";

/**
 * Maximum length of a PROXY header. Version 1 has at most 107 bytes. Cloud providers add TLVs to version 2, such as
 * link and endpoint names or the subject of a client certificate; these headers stay below 1 KiB.
 */
export const proxyHeaderBytes = 4 * 1024;

/** One end of a connection. `address`: an IP address without brackets. */
export type Endpoint = { readonly address: string; readonly port: number };

export type Ends = { readonly source: Endpoint; readonly destination: Endpoint };

/** What a socket's first bytes are. `ends` is undefined if the header states no client (LOCAL, UNKNOWN). */
export type Header =
  | { readonly state: "absent" }
  | { readonly state: "partial" }
  | { readonly state: "malformed"; readonly reason: string }
  | { readonly state: "whole"; readonly length: number; readonly ends: Ends | undefined };

const signature1 = Buffer.from("PROXY ");
const signature2 = Buffer.from("\r\n\r\n\0\r\nQUIT\n");
/** Maximum length of a header of version 1 in bytes, with its CRLF (§2.1). */
const longestLine = 107;
const fixedBytes = 16;

/**
 * Version 2, by IP family: the size in bytes of one address, and of the block that has both addresses and both ports.
 * Other families are ignored.
 */
const families = new Map([
  [1, { addressBytes: 4, blockBytes: 12 }],
  [2, { addressBytes: 16, blockBytes: 36 }],
]);
const unixBlockBytes = 216;

export function readHeader(seen: Buffer): Header {
  if (startsLike(seen, signature1)) return seen.length < signature1.length ? partial : readLine(seen);
  if (startsLike(seen, signature2)) return seen.length < fixedBytes ? partial : readBinary(seen);
  return { state: "absent" };
}

const partial: Header = { state: "partial" };
const malformed = (reason: string): Header => ({ state: "malformed", reason });

/** True if `seen` and `signature` are equal, up to the length of the shorter one. */
function startsLike(seen: Buffer, signature: Buffer): boolean {
  const length = Math.min(seen.length, signature.length);
  return seen.subarray(0, length).equals(signature.subarray(0, length));
}

function readLine(seen: Buffer): Header {
  const end = seen.subarray(0, longestLine).indexOf("\r\n");
  if (end < 0) return seen.length < longestLine ? partial : malformed("its line has no end");
  const line = seen.toString("latin1", signature1.length, end);
  const length = end + 2;
  if (line === "UNKNOWN" || line.startsWith("UNKNOWN ")) return { state: "whole", length, ends: undefined };
  const ends = endsIn(line);
  return ends === undefined ? malformed("its line cannot be read") : { state: "whole", length, ends };
}

function endsIn(line: string): Ends | undefined {
  const [, family, from, to, fromPort, toPort] =
    /^TCP([46]) ([\da-fA-F.:]+) ([\da-fA-F.:]+) (0|[1-9]\d{0,4}) (0|[1-9]\d{0,4})$/.exec(line) ?? [];
  const addressBytes = family === "4" ? 4 : 16;
  const source = endpointIn(from, fromPort, addressBytes);
  const destination = endpointIn(to, toPort, addressBytes);
  return source && destination && { source, destination };
}

function endpointIn(text = "", portText = "", addressBytes: number): Endpoint | undefined {
  const octets = octetsOf(text);
  const port = Number(portText);
  if (octets?.length !== addressBytes || port > 65_535) return undefined;
  return { address: addressOfOctets(Uint8Array.from(octets)), port };
}

function readBinary(seen: Buffer): Header {
  const [version, command] = [seen.readUInt8(12) >> 4, seen.readUInt8(12) & 0xf];
  const [family, transport] = [seen.readUInt8(13) >> 4, seen.readUInt8(13) & 0xf];
  const blockBytes = seen.readUInt16BE(14);
  const length = fixedBytes + blockBytes;
  if (version !== 2) return malformed(`its version is ${version}`);
  if (command > 1) return malformed(`its command is ${command}`);
  if (family > 3 || transport > 2) return malformed("its family or transport is unknown");
  if (length > proxyHeaderBytes) return malformed(`it has ${length} bytes`);
  if (seen.length < length) return partial;
  if (command === 0) return { state: "whole", length, ends: undefined };
  if (transport === 2) return malformed("it is for datagrams");
  return readBlock(seen.subarray(fixedBytes, length), { family, transport });
}

function readBlock(block: Buffer, { family, transport }: { family: number; transport: number }): Header {
  const length = fixedBytes + block.length;
  const form = families.get(family);
  if (block.length < (form?.blockBytes ?? (family === 3 ? unixBlockBytes : 0)))
    return malformed("its addresses are cut short");
  if (form === undefined || transport === 0) return { state: "whole", length, ends: undefined };
  const { addressBytes } = form;
  const addressAt = (at: number): string => addressOfOctets(block.subarray(at, at + addressBytes));
  const ends = {
    source: { address: addressAt(0), port: block.readUInt16BE(2 * addressBytes) },
    destination: { address: addressAt(addressBytes), port: block.readUInt16BE(2 * addressBytes + 2) },
  };
  return { state: "whole", length, ends };
}

export type HeaderVersion = "V1" | "V2";

/**
 * The 13th and 14th byte of version 2. The 13th has the version and a command: LOCAL for the sender's own connections,
 * PROXY for a client's connection. The 14th (`tcp4`, `tcp6`) has the address family and the transport.
 */
const local = 0x20;
const proxied = 0x21;
const tcp4 = 0x11;
const tcp6 = 0x21;

const ownHeaders = {
  V1: Buffer.from("PROXY UNKNOWN\r\n"),
  V2: Buffer.concat([signature2, Buffer.from([local, 0, 0, 0])]),
};

/**
 * Returns a PROXY header with both ends of the client's connection. Without `ends`, or if either end has no IP address,
 * the header states instead that the connection is the proxy's own.
 */
export function writeHeader(version: HeaderVersion, ends: Ends | undefined): Buffer {
  const source = ends && octetsOf(ends.source.address);
  const destination = ends && octetsOf(ends.destination.address);
  if (ends === undefined || source === undefined || destination === undefined) return ownHeaders[version];
  return headerOf(version, [source, destination], [ends.source.port, ends.destination.port]);
}

function headerOf(version: HeaderVersion, octets: readonly (readonly number[])[], ports: number[]): Buffer {
  const isV4 = octets.every(({ length }) => length === 4);
  const addresses = isV4 ? octets : octets.map(mapped);
  if (version === "V1")
    return Buffer.from(`PROXY TCP${isV4 ? 4 : 6} ${[...addresses.map(textOf), ...ports].join(" ")}\r\n`);
  const block = [...addresses.flat(), ...ports.flatMap(u16)];
  const fixed = [proxied, isV4 ? tcp4 : tcp6, ...u16(block.length)];
  return Buffer.concat([signature2, Buffer.from([...fixed, ...block])]);
}

/** Returns an IPv4 address as IPv4-mapped IPv6 (RFC 4291 §2.5.5.2), because both ends must be of one family. */
function mapped(octets: readonly number[]): readonly number[] {
  return octets.length === 16 ? octets : [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ...octets];
}

/** Writes IPv6 in eight hexadecimal groups, because some parsers accept no dots in an IPv6 address. */
function textOf(octets: readonly number[]): string {
  if (octets.length === 4) return addressOfOctets(Uint8Array.from(octets));
  const bytes = Buffer.from(octets);
  return Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(2 * at).toString(16)).join(":");
}

function u16(value: number): readonly number[] {
  return [(value >> 8) & 0xff, value & 0xff];
}
