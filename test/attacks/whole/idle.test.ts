/** A25: sessions and sockets without a request. Their timeout of five minutes is three seconds here. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { pause, sceneOf, times } from "../../support/attack.ts";
import { headers } from "../../support/h2-frames.ts";
import { connectRaw, type RawPeer } from "../../support/raw.ts";

const test = suite("attacks/whole/idle");

const idleMs = 3000;
const opened: RawPeer[] = [];
test.after.each(() => {
  for (const peer of opened.splice(0)) peer.socket.destroy();
});
const scene = sceneOf(test, () => ({ limits: { idleSessionMs: idleMs, h1HeadMs: 1500 } }));

async function h1(text: string): Promise<RawPeer> {
  const peer = await connectRaw(scene.proxy.place.plainPort);
  opened.push(peer);
  peer.send(text);
  return peer;
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: api\r\n\r\n`;
const isGone = ({ isEnded, isClosed }: RawPeer): boolean => isEnded || isClosed;

async function until(what: string, holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 300 && !holds(); tries += 1) await pause(50);
  assert.ok(holds(), what);
}

test("A25: a hundred h2 sessions without a stream are sent away in two steps, whatever PINGs and SETTINGS they send", async () => {
  const clients = await Promise.all(times(100, () => scene.attacker()));
  const began = performance.now();
  for (const client of clients.slice(50)) {
    client.send(headers(1).get("/api"));
    await client.expect(/^DATA 1 .*END/);
  }
  await until("all were sent away", () => clients.every((client) => client.count(/^GOAWAY/) > 0));
  assert.ok(performance.now() - began > idleMs - 500, "not before their time");
  for (const client of clients) await client.closed();
  assert.ok(clients.every((client) => client.count(/^GOAWAY \d+ NO_ERROR/) === 2));
});

test("A25: fifty h1 sockets that ask once and no more, or nothing at all, are ended", async () => {
  const peers = await Promise.all(times(50, (at) => h1(at % 2 === 0 ? get("/api") : "")));
  await until("all are gone", () => peers.every(isGone));
  assert.ok(peers.every((peer, at) => at % 2 === 1 || peer.text.startsWith("HTTP/1.1 200 ")));
});

test("the honest twin of A25: a silent answer that is awaited, a silent tunnel, and a client that asks now and then stay", async () => {
  const [hanging, chatty] = [await scene.attacker(), await scene.attacker()];
  hanging.send(headers(1).get("/hang"));
  const [waiting, watching, tunnel] = [
    await h1(get("/hang")),
    await h1(get("/api/v1/pods?watch=true")),
    await h1("POST /exec HTTP/1.1\r\nHost: api\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"),
  ];
  for (let round = 0; round < 5; round += 1) {
    chatty.send(headers(2 * round + 1).get("/api"));
    await chatty.expect(new RegExp(`^DATA ${2 * round + 1} .*END`));
    await pause(idleMs / 2);
  }
  assert.is(hanging.count(/^GOAWAY/) + chatty.count(/^GOAWAY/), 0);
  assert.equal([waiting, watching, tunnel].map(isGone), [false, false, false]);
  tunnel.send("a word");
  await tunnel.expect("a word");
});

test("a client that speaks plain HTTP to the TLS port and stays is ended a second after its answer", async () => {
  const peer = await connectRaw(scene.proxy.place.port);
  opened.push(peer);
  peer.send(get("/api"));
  await peer.expect("400 Bad Request");
  // A closed peer answers the next byte with a reset.
  await until("its descriptor is given back", () => {
    if (!peer.isClosed) peer.send("x");
    return peer.isClosed;
  });
});

test.run();
