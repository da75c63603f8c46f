import * as fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  type Ends,
  type HeaderVersion,
  proxyHeaderBytes,
  readHeader,
  writeHeader,
} from "../../../src/upstream/net/proxy-protocol.ts";

const test = suite("upstream/net/proxy-protocol");

const rest = "\x16\x03\x01 and what the client says";
const ends = (source: string, sourcePort: number, destination: string, port: number): Ends => ({
  source: { address: source, port: sourcePort },
  destination: { address: destination, port },
});

/** Makes a header of version 2: the signature, the two bytes after it, the block's length, and the block. */
function v2(verCmd: number, famProto: number, block: readonly number[]): Buffer {
  const signature = Buffer.from("0d0a0d0a000d0a515549540a", "hex");
  return Buffer.concat([
    signature,
    Buffer.from([verCmd, famProto, block.length >> 8, block.length & 0xff, ...block]),
  ]);
}

/** Reads the header with the bytes that follow it. Checks also that every truncated header is reported as partial. */
function read(header: string | Buffer): ReturnType<typeof readHeader> {
  const bytes = typeof header === "string" ? Buffer.from(header, "latin1") : header;
  for (let at = 0; at < bytes.length; at += 1)
    assert.equal(readHeader(bytes.subarray(0, at)), { state: "partial" }, `after ${at} bytes`);
  return readHeader(Buffer.concat([bytes, Buffer.from(rest, "latin1")]));
}

test("version 1 names both ends, in IPv4 and IPv6", () => {
  const header = "PROXY TCP4 203.0.113.7 10.0.0.1 56324 443\r\n";
  assert.equal(read(header), {
    state: "whole",
    length: header.length,
    ends: ends("203.0.113.7", 56_324, "10.0.0.1", 443),
  });
  const v6 = read("PROXY TCP6 2001:DB8:0:0:0:0:0:7 ::1 0 65535\r\n");
  assert.equal(v6.state === "whole" && v6.ends, ends("2001:db8::7", 0, "::1", 65_535));
});

test("version 1's UNKNOWN names no address, whatever follows it", () => {
  for (const line of ["PROXY UNKNOWN\r\n", "PROXY UNKNOWN ffff::1 whatever 1 2\r\n"])
    assert.equal(read(line), { state: "whole", length: line.length, ends: undefined });
});

test("version 2 names both ends, and its TLVs are passed over", () => {
  const block = [203, 0, 113, 7, 10, 0, 0, 1, 0xdc, 0x04, 0x01, 0xbb];
  const expected = ends("203.0.113.7", 56_324, "10.0.0.1", 443);
  assert.equal(read(v2(0x21, 0x11, block)), { state: "whole", length: 28, ends: expected });
  // Adds three TLVs: a network namespace, a checksum that need not be verified, and one whose length exceeds the
  // header.
  const withMore = v2(0x21, 0x11, [...block, 0x30, 0, 2, 1, 2, 0x03, 0, 4, 0, 0, 0, 0, 0xee, 0xff, 0xff]);
  assert.equal(read(withMore), { state: "whole", length: withMore.length, ends: expected });
  const v6 = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
  const mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1];
  const both = read(v2(0x21, 0x21, [...v6, ...mapped, 0, 1, 0, 2]));
  assert.equal(both.state === "whole" && both.ends, ends("2001:db8::7", 1, "10.0.0.1", 2));
});

test("version 2's LOCAL, UNSPEC and UNIX name no address", () => {
  for (const header of [
    v2(0x20, 0x00, []),
    v2(0x20, 0x11, [1, 2, 3]),
    v2(0x21, 0x00, []),
    v2(0x21, 0x00, [9, 9, 9]),
    v2(0x21, 0x10, [1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9]),
    v2(
      0x21,
      0x31,
      Array.from({ length: 216 }, () => 47),
    ),
  ])
    assert.equal(read(header), { state: "whole", length: header.length, ends: undefined });
});

test("a malformed header comes with its reason", () => {
  const wrong = (header: string | Buffer): string => {
    const bytes = typeof header === "string" ? Buffer.from(header, "latin1") : header;
    const outcome = readHeader(Buffer.concat([bytes, Buffer.alloc(64)]));
    return outcome.state === "malformed" ? outcome.reason : outcome.state;
  };
  for (const line of [
    "TCP4 1.2.3.4 1.2.3.4 1 65536",
    "TCP4 1.2.3.4 1.2.3.4 01 2",
    "TCP4 1.2.3.4 1.2.3.4 -1 2",
    "TCP4 1.2.3.4 1.2.3.4 1",
    "TCP4 1.2.3.4 1.2.3.4 1 2 ",
    "TCP4  1.2.3.4 1.2.3.4 1 2",
    "TCP4 1.2.3 1.2.3.4 1 2",
    "TCP4 0x7f.1 1.2.3.4 1 2",
    "TCP4 ::1 ::1 1 2",
    "TCP6 1.2.3.4 1.2.3.4 1 2",
    "TCP6 fe80::1%eth0 ::1 1 2",
    "TCP6 1:2 ::1 1 2",
    "tcp4 1.2.3.4 1.2.3.4 1 2",
    "UDP4 1.2.3.4 1.2.3.4 1 2",
    "UNKNOWNS",
    "",
  ])
    assert.is(wrong(`PROXY ${line}\r\n`), "its line cannot be read", line);
  assert.is(wrong(`PROXY UNKNOWN ${"x".repeat(100)}`), "its line has no end");
  assert.is(wrong(`PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n${" ".repeat(80)}`), "its line has no end");
  assert.is(wrong(v2(0x11, 0x11, [])), "its version is 1");
  assert.is(wrong(v2(0x22, 0x11, [])), "its command is 2");
  assert.is(wrong(v2(0x21, 0x41, [])), "its family or transport is unknown");
  assert.is(wrong(v2(0x21, 0x13, [])), "its family or transport is unknown");
  assert.is(
    wrong(
      v2(
        0x21,
        0x12,
        Array.from({ length: 12 }, () => 1),
      ),
    ),
    "it is for datagrams",
  );
  for (const [family, length] of [
    [0x11, 11],
    [0x21, 35],
    [0x31, 215],
  ] as const)
    assert.is(
      wrong(
        v2(
          0x21,
          family,
          Array.from({ length }, () => 1),
        ),
      ),
      "its addresses are cut short",
    );
});

test("one that is too long is refused before it has come", () => {
  const header = v2(0x21, 0x11, []);
  header.writeUInt16BE(proxyHeaderBytes, 14);
  assert.equal(readHeader(header), {
    state: "malformed",
    reason: `it has ${16 + proxyHeaderBytes} bytes`,
  });
});

test("the first bytes of clients themselves are no header", () => {
  for (const first of ["\x16\x03\x01", "GET / HTTP/1.1\r\n", "PRI * HTTP/2.0", "PUT /", "\r\nGET", "PROX /"])
    assert.equal(readHeader(Buffer.from(first, "latin1")), { state: "absent" }, first);
});

test("bytes of any kind are read without a fault", () => {
  fc.assert(
    fc.property(
      fc.constantFrom("PROXY ", "\r\n\r\n\0\r\nQUIT\n", ""),
      fc.uint8Array({ maxLength: 300 }),
      (start, more) => {
        const outcome = readHeader(Buffer.concat([Buffer.from(start), more]));
        if (outcome.state === "whole") assert.ok(outcome.length <= start.length + more.length);
      },
    ),
    { numRuns: 2000 },
  );
});

test("version 1 is written as a line", () => {
  const written = writeHeader("V1", ends("203.0.113.7", 1, "10.0.0.1", 65_535)).toString();
  assert.is(written, "PROXY TCP4 203.0.113.7 10.0.0.1 1 65535\r\n");
  const mixed = writeHeader("V1", ends("2001:db8::7", 1, "10.0.0.1", 2)).toString();
  assert.is(mixed, "PROXY TCP6 2001:db8:0:0:0:0:0:7 0:0:0:0:0:ffff:a00:1 1 2\r\n");
});

test("version 2 is written as bytes", () => {
  const written = writeHeader("V2", ends("203.0.113.7", 1, "10.0.0.1", 65_535)).toString("hex");
  assert.is(written, "0d0a0d0a000d0a515549540a2111000ccb0071070a0000010001ffff");
});

const address = fc.oneof(fc.ipV4(), fc.ipV6());
const port = fc.integer({ min: 0, max: 65_535 });

test("what is written is read again, whatever the ends are", () => {
  fc.assert(
    fc.property(
      fc.tuple(address, port, address, port),
      fc.constantFrom<HeaderVersion>("V1", "V2"),
      ([from, fromPort, to, toPort], version) => {
        const written = writeHeader(version, ends(from, fromPort, to, toPort));
        const again = readHeader(written);
        assert.is(again.state, "whole");
        if (again.state !== "whole" || again.ends === undefined) return assert.unreachable();
        assert.is(again.length, written.length);
        assert.equal([again.ends.source.port, again.ends.destination.port], [fromPort, toPort]);
        // Compares the addresses in binary form, because one address has several textual forms.
        const binary = writeHeader("V2", ends(from, fromPort, to, toPort));
        const isMixed = from.includes(":") !== to.includes(":");
        if (!isMixed && !from.includes(".") && !to.includes("."))
          assert.equal(writeHeader("V2", again.ends), binary);
      },
    ),
  );
});

test("without ends it says that the connection is the sender's own", () => {
  for (const none of [undefined, ends("", 0, "10.0.0.1", 1)]) {
    assert.is(writeHeader("V1", none).toString(), "PROXY UNKNOWN\r\n");
    assert.is(writeHeader("V2", none).toString("hex"), "0d0a0d0a000d0a515549540a20000000");
  }
});

test.run();
