import { once } from "node:events";
import net from "node:net";
import tls from "node:tls";
import * as fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { helloBytes, readHello } from "../../../src/upstream/net/client-hello.ts";
import { extension, hello, helloMessage, inRecords, nameExtension, vector } from "../../support/hello.ts";
import { within } from "../../support/within.ts";

const test = suite("upstream/net/client-hello");

/** Returns the reason if the ClientHello is malformed, and the reader's state otherwise. */
function fault(bytes: Buffer): string {
  const outcome = readHello(bytes);
  return outcome.state === "malformed" ? outcome.reason : outcome.state;
}

test("a hello names its server, whole and at every split", () => {
  const bytes = hello({ serverName: "API.Example.com." });
  for (let at = 0; at < bytes.length; at += 1)
    assert.equal(readHello(bytes.subarray(0, at)), { state: "partial" }, `after ${at} bytes`);
  const expected = {
    state: "whole",
    length: bytes.length,
    serverName: "api.example.com",
    hasEarlyData: false,
  };
  assert.equal(readHello(bytes), expected);
  assert.equal(readHello(Buffer.concat([bytes, Buffer.from("more")])), expected);
});

test("it may come in several records, its own header among them", () => {
  for (const recordBytes of [16, 50, 100]) {
    const bytes = hello({ serverName: "api.example.com", recordBytes });
    const outcome = readHello(bytes);
    assert.is(outcome.state === "whole" && outcome.serverName, "api.example.com");
    assert.is(outcome.state === "whole" && outcome.length, bytes.length);
    assert.is(readHello(bytes.subarray(0, -1)).state, "partial");
  }
  const split = Buffer.concat([
    inRecords(helloMessage().subarray(0, 2)),
    inRecords(helloMessage().subarray(2)),
  ]);
  assert.is(readHello(split).state, "whole");
});

test("it need not name a server, nor have extensions at all", () => {
  assert.equal(readHello(hello()), {
    state: "whole",
    length: hello().length,
    serverName: undefined,
    hasEarlyData: false,
  });
  const old = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32),
    vector(1),
    vector(2, Buffer.from([0, 0x2f])),
    vector(1, Buffer.from([0])),
  ]);
  assert.is(readHello(inRecords(Buffer.concat([Buffer.from([1]), vector(3, old)]))).state, "whole");
});

test("early data is noticed, since it may be a request", () => {
  const outcome = readHello(hello({ extensions: [extension(42, Buffer.alloc(0))], serverName: "a" }));
  assert.ok(outcome.state === "whole" && outcome.hasEarlyData && outcome.serverName === "a");
});

test("whatever is not TLS is foreign from its first byte on", () => {
  for (const first of [
    "GET / HTTP/1.1\r\n",
    "PRI * HTTP/2.0\r\n",
    "PROXY TCP4 ",
    "\x80\x2e\x01\x00\x02",
    "\0",
    "SSH-2.0-",
  ])
    assert.is(readHello(Buffer.from(first, "latin1")).state, "foreign");
});

test("records that are none of a hello's are refused, as soon as they show", () => {
  assert.is(fault(Buffer.from([0x16, 2, 0, 0, 9])), "not all of its records are handshake records");
  assert.is(fault(Buffer.from([0x16, 3, 1, 0, 0])), "it has a record of 0 bytes");
  assert.is(fault(Buffer.from([0x16, 3, 1, 0x40, 1])), "it has a record of 16385 bytes");
  assert.is(fault(Buffer.from([0x16, 3, 1, 0, 9, 2, 0, 0, 5])), "its message type is 2");
  const half = inRecords(helloMessage().subarray(0, 20));
  assert.is(
    fault(Buffer.concat([half, Buffer.from([0x17, 3, 3, 0, 1, 0])])),
    "not all of its records are handshake records",
  );
  const long = Buffer.concat([helloMessage(), Buffer.from([0])]);
  assert.is(fault(inRecords(long)), "other data follows it in its record");
});

test("one of 64 KiB is refused by its stated length, and one of 60 KiB is not", () => {
  const most = helloMessage({ paddingBytes: 60_000, serverName: "big" });
  const outcome = readHello(inRecords(most));
  assert.is(outcome.state === "whole" && outcome.serverName, "big");
  const header = Buffer.from([0x16, 3, 1, 0x40, 0, 1, 1, 0, 0]);
  assert.is(fault(header), `it has ${65_536 + 4} bytes`);
  assert.ok(helloBytes <= 65_540);
});

test("one in more records than a client needs is refused", () => {
  const bytes = hello({ serverName: "api.example.com", recordBytes: 2 });
  assert.is(fault(bytes), "it has too many records");
});

test("lengths that lie are seen, wherever they are", () => {
  const message = helloMessage({ serverName: "api.example.com" });
  const nameAt = message.indexOf("api.example.com");
  for (const at of [38, 38 + 33, 38 + 33 + 4, nameAt - 11, nameAt - 7, nameAt - 5, nameAt - 2]) {
    const lie = Buffer.from(message);
    lie[at] = 0xff;
    assert.match(fault(inRecords(lie)), /ends inside|follows|two servers/, `byte ${at}`);
  }
});

test("two names, or one that is none, are refused (A48)", () => {
  const named = (...extensions: Buffer[]): string => fault(hello({ extensions }));
  assert.is(named(nameExtension("a", "b")), "it names two servers");
  assert.is(named(nameExtension("a"), nameExtension("a")), "it names two servers");
  for (const name of ["", ".", "a\0b", "a b", "a\r\nb", "\x1b[2J", "a".repeat(254), "ä"])
    assert.is(named(nameExtension(name)), "its server name is not valid", name);
  for (const name of ["xn--", "-", "a_b", "10.0.0.1", "a".repeat(253)])
    assert.is(named(nameExtension(name)), "whole");
});

test("the hello of Node's own client is read", async () => {
  const server = net.createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as net.AddressInfo;
  const said = once(server, "connection").then(async ([socket]) => {
    const [chunk] = await once(socket as net.Socket, "data");
    (socket as net.Socket).destroy();
    return chunk as Buffer;
  });
  tls
    .connect({ port, host: "127.0.0.1", servername: "localhost", ALPNProtocols: ["h2"] })
    .on("error", () => {});
  const bytes = await within(20_000, "a ClientHello", said);
  server.close();
  const outcome = readHello(bytes);
  assert.is(outcome.state === "whole" && outcome.serverName, "localhost");
  assert.is(outcome.state === "whole" && outcome.length, bytes.length);
});

test("bytes of any kind are read without a fault, and a changed hello is a hello or none", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      readHello(Buffer.concat([Buffer.from([0x16, 3, 1]), bytes]));
    }),
    { numRuns: 1000 },
  );
  const good = hello({ serverName: "api.example.com" });
  fc.assert(
    fc.property(fc.nat({ max: good.length - 1 }), fc.nat({ max: 255 }), (at, octet) => {
      const changed = Buffer.from(good);
      changed[at] = octet;
      const outcome = readHello(changed);
      if (outcome.state === "whole") assert.ok(outcome.length <= changed.length);
    }),
    { numRuns: 2000 },
  );
});

test.run();
