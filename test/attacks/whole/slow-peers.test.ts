import { suite } from "uvu";
import * as assert from "uvu/assert";
import { pause, sceneOf } from "../../support/attack.ts";
import {
  continued,
  type Frame,
  headers,
  ping,
  preface,
  raw,
  settings,
  windowUpdate,
  wire,
} from "../../support/h2-frames.ts";
import { connectRaw, type RawPeer } from "../../support/raw.ts";
import { RawH2 } from "../../support/raw-h2.ts";

const test = suite("attacks/whole/slow-peers");

const scene = sceneOf(test);

const ids = (count: number): number[] => Array.from({ length: count }, (_, at) => 2 * at + 1);
const MiB = 1 << 20;

function plain(first?: Frame | null): Promise<RawH2> {
  return RawH2.connect({ port: scene.proxy.place.plainPort }, first);
}

test("a client that is sent away and stays is let go of after a second", async () => {
  const client = await plain();
  client.send(raw(6, 0, 0, "short"));
  await client.expect(/GOAWAY 0 FRAME_SIZE_ERROR/);
  await pause(1500);
  // The peer has closed its socket, so it answers the next bytes with a reset, which makes the write after that fail.
  for (let tries = 0; tries < 20 && !client.isClosed; tries += 1) {
    client.send(settings());
    // oxlint-disable-next-line no-await-in-loop
    await pause(50);
  }
  assert.ok(client.isClosed);
});

test("a client that ends its half and reads nothing is let go of", async () => {
  const client = await plain(settings({ INITIAL_WINDOW_SIZE: 0x7fff_ffff }));
  client.send(windowUpdate(0, 0x7fff_0000), headers(1).get("/big/50000000"));
  await client.until("the answer", () => client.count(/DATA/) > 0);
  client.socket.pause();
  client.socket.end();
  await pause(300);
  const before = await scene.proxy.state();
  assert.ok(before.exchanges > 0);
  await scene.gone(12_000);
  client.destroy();
});

test("CVE-2019-9517: answers without a body that the client does not read do not pile up, and a late reader gets them all", async () => {
  const before = await scene.proxy.state();
  const client = await scene.attacker();
  client.socket.pause();
  let sent = 0;
  for (
    const beganAt = performance.now();
    sent < 2000 && performance.now() - beganAt < 4000;
    await pause(10)
  ) {
    // Sends fifty at a time. More would be refused because of their number.
    if (scene.target.askedLong < sent) continue;
    client.send(...ids(50).map((id) => headers(2 * sent + id).head("/long")));
    sent += 50;
  }
  const during = await scene.proxy.state();
  const grown = during.heapBytes - before.heapBytes;
  assert.ok(grown < 12 * MiB, `${sent} requests, ${grown} bytes`);
  client.socket.resume();
  await client.until("all answers", () => client.count(/^HEADERS \d+ :status=200/) === sent, 10_000);
});

test("A6, A22: a client that makes no progress is closed after ten seconds, and an idle client is not", async () => {
  const { port, plainPort } = scene.proxy.place;
  const idle = await scene.attacker();
  const dribbles: (() => void)[] = [];
  const silent = await connectRaw(port);
  const halfHello = await connectRaw(port);
  const hello = Buffer.from("16030100f8010000f40303", "hex");
  dribbles.push(() => halfHello.send(hello.subarray(0, 1)));
  const silentPlain = await connectRaw(plainPort);
  const halfPreface = await connectRaw(plainPort);
  halfPreface.send(preface.slice(0, 18));
  const noPreface = await scene.attacker(null);
  const noSettings = await scene.attacker(null);
  noSettings.sendBytes(Buffer.from(preface));
  const halfBlock = await scene.attacker();
  const [first = raw(1, 0, 1)] = continued(headers(1).get("/api"), 10);
  halfBlock.send(first);
  dribbles.push(() => halfBlock.send(raw(9, 0, 1, "")));
  const halfPing = await scene.attacker();
  halfPing.sendBytes(wire(ping(1)).subarray(0, 13));
  const halfScrape = await connectRaw(scene.proxy.place.adminPort);
  halfScrape.send("GET /metrics HTTP/1.1\r\n");
  const peers = { halfScrape, silent, halfHello, silentPlain, halfPreface, noPreface, noSettings, halfBlock };
  const stays = (): string[] => Object.entries(peers).flatMap(([name, peer]) => (isGone(peer) ? [] : [name]));
  const beganAt = performance.now();
  await pause(1000);
  assert.equal(stays(), Object.keys(peers));
  for (let second = 0; second < 15 && stays().length > 0; second += 1) {
    for (const dribble of dribbles.filter(() => second < 6)) dribble();
    // oxlint-disable-next-line no-await-in-loop
    await pause(1000);
  }
  assert.equal(stays(), []);
  assert.ok(performance.now() - beganAt > 8000);
  assert.match(halfBlock.heard.at(-1) ?? "", "GOAWAY 0 PROTOCOL_ERROR");
  idle.send(headers(1).get("/api"));
  await idle.expect(/HEADERS 1 :status=200/);
  // The 30 s timeout of A18 is tested on the manual clock. This test checks only that such a peer has no effect on
  // others.
  assert.not(halfPing.isClosed);
  for (const peer of [halfScrape, silent, halfHello, silentPlain, halfPreface]) peer.socket.destroy();
});

function isGone(peer: RawH2 | RawPeer): boolean {
  return peer.isClosed || ("isEnded" in peer && peer.isEnded);
}

test.run();
