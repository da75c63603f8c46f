import * as fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type HeaderVersion, writeHeader } from "../../../src/proxy/net/proxy-header.ts";
import { type Ends, readHeader } from "../../../src/proxy/net/proxy-protocol.ts";

const test = suite("proxy/net/proxy-header");

const ends = (source: string, sourcePort: number, destination: string, port: number): Ends => ({
  source: { address: source, port: sourcePort },
  destination: { address: destination, port },
});

test("version 1 is a line", () => {
  const written = writeHeader("V1", ends("203.0.113.7", 1, "10.0.0.1", 65_535)).toString();
  assert.is(written, "PROXY TCP4 203.0.113.7 10.0.0.1 1 65535\r\n");
  const mixed = writeHeader("V1", ends("2001:db8::7", 1, "10.0.0.1", 2)).toString();
  assert.is(mixed, "PROXY TCP6 2001:db8:0:0:0:0:0:7 0:0:0:0:0:ffff:a00:1 1 2\r\n");
});

test("version 2 is octets", () => {
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
        // By their octets, since one address has many texts.
        const v2 = writeHeader("V2", ends(from, fromPort, to, toPort));
        const isMixed = from.includes(":") !== to.includes(":");
        if (!isMixed && !from.includes(".") && !to.includes("."))
          assert.equal(writeHeader("V2", again.ends), v2);
      },
    ),
  );
});

test("without ends it says that the connection is our own", () => {
  for (const none of [undefined, ends("", 0, "10.0.0.1", 1)]) {
    assert.is(writeHeader("V1", none).toString(), "PROXY UNKNOWN\r\n");
    assert.is(writeHeader("V2", none).toString("hex"), "0d0a0d0a000d0a515549540a20000000");
  }
});

test.run();
