/**
 * A26 over HTTP/1.1 and Upgrade. The proxy keeps the head of a request, because it may have to send it again. Requests
 * with long heads are ended before they can fill the heap. The head of a tunnel is not kept, because it is never sent
 * again.
 */
import { once } from "node:events";
import { connect as tlsConnect } from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { pause, Scene, times } from "../../support/attack.ts";
import { connectRaw, RawPeer } from "../../support/raw.ts";
import { within } from "../../support/within.ts";

const test = suite("attacks/whole/overload-h1");

let scene: Scene;
let liveBytes = 0;
const peers: RawPeer[] = [];
test.before(async () => {
  scene = await Scene.open({ heapMiB: 160 });
  liveBytes = (await scene.proxy.state()).heapBytes;
});
test.after.each(async () => {
  for (const peer of peers.splice(0)) peer.socket.destroy();
  await scene.settledLive(liveBytes);
  await scene.measureFromHere();
  await scene.settled();
});
test.after(() => scene.close());

async function connect(): Promise<RawPeer> {
  const peer = await connectRaw(scene.proxy.place.plainPort);
  peers.push(peer);
  return peer;
}

const head = (first: string, ...fields: readonly string[]): string =>
  [`${first} HTTP/1.1`, "Host: api", ...fields, "", ""].join("\r\n");
const upgrade = (path: string, ...fields: readonly string[]): string =>
  head(`POST ${path}`, "Connection: Upgrade", "Upgrade: SPDY/3.1", ...fields);

/** Returns fields of 100 KiB in total whose text no other head has. */
const unlike = (word: string): readonly string[] => [
  `X-One: ${word.padEnd(50_000, word)}`,
  `X-Two: ${word.padEnd(50_001, word)}`,
];

/**
 * The backend accepts the attackers' token. Clients without an accepted credential may have far fewer requests at once
 * (A43).
 */
const accepted = "Authorization: Bearer overload";

/** Returns a client that has completed one request, and keeps its socket open. */
async function kept(): Promise<RawPeer> {
  const peer = await connect();
  peer.send(head("GET /api", accepted));
  await peer.expect("HTTP/1.1 200");
  return peer;
}

/** Opens 25 clients at a time, so that the bystander, which runs in this process, is not delayed by all of them. */
async function inBatches<T>(count: number, of: (at: number) => Promise<T>): Promise<T[]> {
  const all: T[] = [];
  for (let first = 0; first < count; first += 25) {
    all.push(...(await Promise.all(times(Math.min(25, count - first), (at) => of(first + at)))));
    await pause(10);
  }
  return all;
}

const isLost = ({ isEnded, isClosed }: RawPeer): boolean => isEnded || isClosed;
/** A request that arrives while the buffers are full gets a 429 at once. */
const isEndedOrRefused = (peer: RawPeer): boolean => isLost(peer) || peer.text.includes("HTTP/1.1 429");

async function echoes(tunnel: RawPeer, word: string): Promise<void> {
  tunnel.send(word);
  await tunnel.expect(word);
}

test("A26 over HTTP/1.1: 2,000 heads of 100 KiB that hang are held to the bound of all that waits; a tunnel and the watch live on", async () => {
  const honest = await connect();
  honest.send(upgrade("/exec"));
  await honest.expect("\r\n\r\n");
  const attackers = await inBatches(2000, kept);
  const before = await scene.proxy.state();
  for (let asked = 0; asked < attackers.length; asked += 50) {
    for (const [at, attacker] of attackers.slice(asked, asked + 50).entries())
      attacker.send(head("GET /hang", accepted, ...unlike(`${asked + at}-`)));
    await pause(100);
  }
  await pause(1000);
  const after = await scene.proxy.state();
  const heldMiB = (after.heapBytes - before.heapBytes) >> 20;
  const lost = attackers.filter(isEndedOrRefused).length;
  process.stdout.write(
    `\nfigure: of 2,000 long heads over HTTP/1.1 ${lost} were ended, ${heldMiB} MiB are held\n`,
  );
  assert.ok(
    after.failures.some((message) => message.startsWith("Buffered bytes exceed the limit of this process")),
  );
  assert.ok(lost > 1000 && heldMiB < 80, `${lost} were ended, ${heldMiB} MiB are held`);
  await echoes(honest, "still here");
});

test("A26 over HTTP/1.1: 200 sockets that say 2,000 requests each in one breath are ended, and no more of it is parsed", async () => {
  const breath = head("GET /api").repeat(2000);
  const options = { port: scene.proxy.place.port, host: "127.0.0.1", rejectUnauthorized: false };
  const attackers = await inBatches(200, async (at) => {
    if (at % 2 === 0) return connect();
    const peer = new RawPeer(tlsConnect({ ...options, ALPNProtocols: ["http/1.1"] }));
    peers.push(peer);
    await within(20_000, "TLS", once(peer.socket, "secureConnect"));
    return peer;
  });
  for (const attacker of attackers) attacker.send(breath);
  for (let tries = 0; tries < 100 && !attackers.every(isLost); tries += 1) await pause(100);
  assert.is(attackers.filter((peer) => !isLost(peer)).length, 0);
  const { heapBytes, refusals } = await scene.proxy.state();
  process.stdout.write(`\nfigure: 400,000 requests in 200 breaths, ${heapBytes >> 20} MiB live\n`);
  assert.ok(refusals.every((reason) => !reason.startsWith("memory is short")));
});

test("A26 over Upgrade: a thousand tunnels with heads of 100 KiB, open or waiting, hold none of them", async () => {
  const before = await scene.proxy.state();
  await inBatches(1000, async (at) => {
    const peer = await connect();
    peer.send(upgrade(at % 2 === 0 ? "/exec/long" : "/hang/exec", ...unlike(`${at}-`)));
  });
  for (let tries = 0; tries < 100 && scene.target.tunnels < 500; tries += 1) await pause(100);
  await pause(500);
  const after = await scene.proxy.state();
  const grownMiB = (after.heapBytes - before.heapBytes) / 2 ** 20;
  process.stdout.write(`\nfigure: a thousand tunnels hold ${grownMiB.toFixed(1)} MiB\n`);
  assert.is(peers.filter(isLost).length, 0);
  // The tunnels were opened with 100 MiB of heads. Two sockets and a TLS session take about 20 KiB for each tunnel.
  assert.ok(grownMiB < 40, `${grownMiB} MiB are held`);
});

test("the honest twin of A26 over HTTP/1.1 and Upgrade: a head of 100 KiB is served, and a tunnel opens behind one", async () => {
  for (let tries = 0; tries < 100; tries += 1) {
    const state = await scene.proxy.state();
    if (state.heapBytes < 100 << 20) break;
    await pause(100);
  }
  const client = await connect();
  client.send(head("GET /fields", ...unlike("honest")));
  await client.expect("HTTP/1.1 200");
  const tunnel = await connect();
  tunnel.send(upgrade("/exec/long", ...unlike("honest")));
  await tunnel.expect(/^HTTP\/1.1 101[^]*\r\n\r\n/);
  await echoes(tunnel, "ls\n");
});

test.run();
