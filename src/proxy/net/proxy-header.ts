/** The PROXY header that the proxy writes to backends behind their own load balancer. Pure. */
import { addressOfOctets, octetsOf } from "../../base/address.ts";
import type { Ends } from "./proxy-protocol.ts";

export type HeaderVersion = "V1" | "V2";

/** Version 2's signature, and its commands for a connection of the proxy's own (LOCAL) and for a client's (PROXY). */
const signature = Buffer.from("\r\n\r\n\0\r\nQUIT\n");
const local = 0x20;
const proxied = 0x21;
const tcp4 = 0x11;
const tcp6 = 0x21;

const ownHeaders = {
  V1: Buffer.from("PROXY UNKNOWN\r\n"),
  V2: Buffer.concat([signature, Buffer.from([local, 0, 0, 0])]),
};

/**
 * Names both ends. Without them, or if they are no IP addresses, the header states that the connection is the proxy's
 * own.
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
  return Buffer.concat([signature, Buffer.from([...fixed, ...block])]);
}

/** Both ends must be of one family: if only one is IPv6, the other is written as a mapped address (RFC 4291 §2.5.5.2). */
function mapped(octets: readonly number[]): readonly number[] {
  return octets.length === 16 ? octets : [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ...octets];
}

/** In IPv6 every group is written out: some readers accept no dots in such an address. */
function textOf(octets: readonly number[]): string {
  if (octets.length === 4) return addressOfOctets(Uint8Array.from(octets));
  const bytes = Buffer.from(octets);
  return Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(2 * at).toString(16)).join(":");
}

function u16(value: number): readonly number[] {
  return [(value >> 8) & 0xff, value & 0xff];
}
