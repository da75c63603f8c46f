import http2 from "node:http2";
import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { peekedBytes } from "../../../src/upstream/net/peek.ts";
import { pause, Scene } from "../../support/attack.ts";
import { hello, helloMessage, inRecords } from "../../support/hello.ts";
import { connectRaw, type RawPeer } from "../../support/raw.ts";
import { within } from "../../support/within.ts";

const test = suite("attacks/whole/passthrough");

const listeners = `  - {name: through, address: "127.0.0.1:0", mode: Passthrough}
  - {name: few, address: "127.0.0.1:0", mode: Passthrough, maxConnectionsPerSource: 20}
  - name: balanced
    address: "127.0.0.1:0"
    mode: Passthrough
    maxConnectionsPerSource: 20
    proxyProtocol: {mode: Required, trustedCIDRs: [127.0.0.1/32]}`;

let scene: Scene;
let peers: RawPeer[] = [];
test.before(async () => {
  scene = await Scene.open({ listeners });
});
test.after.each(async () => {
  for (const peer of peers) peer.socket.destroy();
  peers = [];
  await serves();
  await scene.settled();
});
test.after(() => scene.close());

async function raw(listener: string): Promise<RawPeer> {
  const peer = await connectRaw(scene.proxy.place.ports[listener] ?? 0);
  peers.push(peer);
  return peer;
}

/** The honest counterpart of all attacks here: a client that the backend answers through an end-to-end TLS session. */
async function serves(listener = "through", before = ""): Promise<void> {
  const { socket } = await raw(listener);
  socket.write(before);
  const { ca } = scene.target;
  const secure = tls.connect({ socket, ca, servername: "localhost", ALPNProtocols: ["h2"] });
  secure.on("error", () => {});
  const session = http2.connect("https://localhost", { createConnection: () => secure });
  session.on("error", () => {});
  const answered = new Promise<unknown>((resolve, reject) => {
    session.request({ ":path": "/api" }).on("response", resolve).on("error", reject).resume();
  });
  await within(20_000, `an answer through ${listener}`, answered);
  session.destroy();
  secure.destroy();
}

const refusedFor = async (message: string): Promise<number> => {
  const { refusals } = await scene.proxy.state();
  return refusals.filter((one) => one === message).length;
};

test("hellos that never end hold no more than their bound, and end at their deadline", async () => {
  const before = await scene.proxy.state();
  const half = inRecords(helloMessage({ paddingBytes: 60_000 })).subarray(0, 50_000);
  for (let count = 0; count < 400; count += 1) (await raw("through")).send(half);
  await pause(300);
  await serves();
  const { rssBytes } = await scene.proxy.state();
  // 400 ClientHellos would take 20 MB, or up to twice that, because buffers grow by doubling. Connections over the
  // limit are closed at once.
  const most = peekedBytes + 48 * 1024 * 1024;
  assert.ok(rssBytes - before.rssBytes < most, `${(rssBytes - before.rssBytes) / 1e6} MB more`);
  assert.is(scene.target.resets, 0);
});

test("a slow hello gets its ten seconds and not eleven", async () => {
  const peer = await raw("through");
  const octets = hello({ serverName: "localhost" });
  const beganAt = performance.now();
  let at = 0;
  while (!peer.isEnded && !peer.isClosed && performance.now() - beganAt < 15_000) {
    peer.send(octets.subarray(at, at + 1));
    at += 1;
    await pause(250);
  }
  const tookMs = performance.now() - beganAt;
  assert.ok(tookMs > limits.handshakeMs - 500 && tookMs < limits.handshakeMs + 3000, `${tookMs} ms`);
});

test("a hello of 64 KiB and garbage of any kind reach no backend, and are told so", async () => {
  const asked = scene.target.connections;
  const big = await raw("through");
  big.send(Buffer.from([0x16, 3, 1, 0x40, 0, 1, 1, 0, 0]));
  await big.expect("\x15\x03\x03\0\x02\x02\x32");
  const many = await raw("through");
  many.send(hello({ serverName: "localhost", recordBytes: 2 }));
  await many.expect("\x15\x03\x03\0\x02\x02\x32");
  for (const junk of [
    "GET / HTTP/1.1\r\n\r\n",
    "\0".repeat(100),
    "\x80\x2e\x01\x00\x02",
    "PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n",
  ]) {
    const peer = await raw("through");
    peer.send(junk);
    await peer.expect("400 Bad Request");
  }
  for (const junk of ["\x16\x03\x01\xff\xff", "\x16".repeat(2000), "\x16\x03\x01\0\0"]) {
    const peer = await raw("through");
    peer.send(junk);
    await peer.expect("\x15\x03\x03");
  }
  assert.is(scene.target.connections, asked, "garbage reached the backend");
  const text = await scene.metrics();
  assert.match(text, /passthrough_connections_refused_total\{code="bad-request",origin="client"\} 9/);
});

test("a hello that breaks off at any byte takes nothing with it (A52)", async () => {
  const octets = hello({ serverName: "localhost", recordBytes: 40 });
  for (let at = 0; at <= octets.length; at += 3) {
    const peer = await raw("through");
    peer.send(octets.subarray(0, at));
    if (at % 2 === 0) peer.socket.resetAndDestroy();
    else peer.socket.end();
  }
});

test("a flood from one source ends at its bound; behind a balancer each client is a source of its own", async () => {
  const reason = "too many connections from one source";
  const before = await refusedFor(reason);
  const flood: RawPeer[] = [];
  for (let count = 0; count < 60; count += 1) flood.push(await raw("few"));
  await pause(200);
  const open = flood.filter((peer) => !peer.isClosed && !peer.isEnded).length;
  assert.is(open, 20);
  assert.is((await refusedFor(reason)) - before, 40);
  for (const peer of flood) peer.socket.destroy();
  await pause(100);
  await serves("few");
  const proxied = (client: string): string => `PROXY TCP4 ${client} 192.0.2.1 1234 443\r\n`;
  const behind: RawPeer[] = [];
  for (let count = 0; count < 30; count += 1) {
    const peer = await raw("balanced");
    peer.send(proxied("203.0.113.7"));
    behind.push(peer);
  }
  await pause(200);
  assert.is(behind.filter((peer) => !peer.isClosed && !peer.isEnded).length, 20);
  await serves("balanced", proxied("203.0.113.8"));
});

test("half a PROXY header, none, and one that lies about its length are refused or ended", async () => {
  const none = await raw("balanced");
  none.send(hello({ serverName: "localhost" }));
  const long = await raw("balanced");
  long.send(Buffer.from("0d0a0d0a000d0a515549540a2111ffff", "hex"));
  const endless = await raw("balanced");
  endless.send(`PROXY TCP4 ${"1".repeat(200)}`);
  await Promise.all([none.ended(), long.ended(), endless.ended()]);
  assert.is(await refusedFor("PROXY header is missing"), 1);
  assert.is(await refusedFor("PROXY header is malformed: it has 65551 bytes"), 1);
  assert.is(await refusedFor("PROXY header is malformed: its line has no end"), 1);
  await serves("balanced", "PROXY UNKNOWN\r\n");
});

test.run();
