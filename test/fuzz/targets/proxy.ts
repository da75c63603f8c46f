/**
 * The first bytes of a connection: PROXY protocol headers and ClientHellos. Each must be complete at the same byte,
 * whatever follows it. The values in them are also parsed as addresses and networks, with which the proxy compares
 * them.
 */
import { helloRecords, readHello } from "../../../src/upstream/net/client-hello.ts";
import { readHeader, writeHeader } from "../../../src/upstream/net/proxy-protocol.ts";
import { extension, hello, helloMessage, inRecords, nameExtension } from "../../support/hello.ts";
import { checkAddresses } from "../addresses.ts";
import { same, type Target } from "../target.ts";

const v2 = "0d0a0d0a000d0a515549540a";
const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");

function check(
  what: string,
  read: (seen: Buffer) => { readonly state: string; readonly length?: number },
  input: Buffer,
): void {
  const found = read(input);
  if (found.state !== "whole") return;
  const { length = 0 } = found;
  if (length < 1 || length > input.length) throw new Error(`${what} of ${length} bytes in ${input.length}`);
  same(`${what} with what follows`, read(Buffer.concat([input, Buffer.from("more")])), found);
  same(`${what} alone`, read(input.subarray(0, length)), found);
  for (const cut of [1, length >> 1, length - 1])
    if (read(input.subarray(0, cut)).state === "whole")
      throw new Error(`${what} is whole at ${cut} and at ${length}`);
}

export const proxy: Target = {
  sources: ["upstream/net/proxy-protocol", "upstream/net/client-hello", "base/address"],
  seeds: [
    "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\nGET",
    "PROXY TCP6 2001:db8::1 ::ffff:1.2.3.4 1 65535\r\n",
    "PROXY UNKNOWN ffff::1\r\n",
    hex(`${v2} 21 11 000c c0000201 c6336401 dc04 01bb`),
    hex(`${v2} 20 00 0000`),
    hex(`${v2} 21 21 0028 ${"20010db8".padEnd(32, "0")} ${"fe80".padEnd(32, "0")} 0001 0002 04000100`),
    hello({ serverName: "kubernetes.default.svc", extensions: [extension(42, Buffer.alloc(0))] }),
    hello({ recordBytes: 40, extensions: [nameExtension("a.example", "b.example")] }),
    hello({ serverName: "a.example", extensions: [nameExtension("b.example")] }),
    inRecords(helloMessage(), Math.floor(helloMessage().length / helloRecords)),
    "10.0.0.0/8 fd00::/8 127.0.0.1:8443 [::]:8443 https://a-1.example:6443/ http://[::1] localhost:0",
  ],
  words: [
    "PROXY ",
    "TCP4 ",
    "TCP6 ",
    "UNKNOWN",
    "\r\n",
    "::",
    "0.0.0.0",
    "65535",
    "65536",
    hex(v2),
    hex("21"),
    hex("000c"),
    hex("160301"),
    hex("01"),
    hex("0000"),
    hex("002a0000"),
    "https://",
    "localhost",
    "[::1]:0",
    "/8",
    "%lo",
  ],
  run(input) {
    check("a PROXY header", readHeader, input);
    check("a ClientHello", readHello, input);
    checkAddresses(input.toString("latin1").split(/\s+/));
    const header = readHeader(input);
    if (header.state !== "whole") return;
    for (const version of ["V1", "V2"] as const) {
      const written = readHeader(writeHeader(version, header.ends));
      const ends = written.state === "whole" ? written.ends : written.state;
      same(`read, written as ${version} and read`, ends, header.ends);
    }
  },
};
