/**
 * A26: thousands of heads without a response fill the heap. Long heads reach the limit of buffered bytes first. Heads
 * of usual length are limited only by the heap: the proxy first refuses new clients, then closes idle ones, then ends
 * requests. The bystander's watch must survive.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { pause, Scene } from "../../support/attack.ts";
import { figure } from "../../support/figure.ts";
import { continued, headers } from "../../support/h2-frames.ts";
import { HealthProber } from "../../support/health-prober.ts";
import { connectRaw, type RawPeer } from "../../support/raw.ts";

const test = suite("attacks/whole/overload");

/**
 * The longest time in ms that a health response may take, measured from a separate process. The time that this process
 * and the proxy's main thread wait for a CPU is subtracted. The same wait of the thread that answers is included:
 * garbage collection of a nearly full heap uses most of both cores. The limit is half of a kubelet's timeout.
 */
const mostMs = 500;

let scene: Scene;
let liveBytes = 0;
test.before(async () => {
  scene = await Scene.open({ heapMiB: 160 });
  liveBytes = (await scene.proxy.state()).heapBytes;
});
test.after.each(async () => {
  await scene.settledLive(liveBytes);
  // The heap grew by 120 MiB, and `settledLive` has checked that all of it is free. RSS is checked loosely, because
  // malloc keeps the pages of some buffers: 20 to 75 MiB were measured, and the pages are used again in the next test.
  await scene.settled({ mostLeftBytes: 96 << 20 });
});
test.after(() => scene.close());

/** Returns two fields whose text no other head has: by default 14 KiB in total. */
const unlike = (word: string, bytes = 7000): readonly (readonly [string, string])[] => [
  ["x-one", word.padEnd(bytes, word)],
  ["x-two", word.padEnd(bytes + 1, word)],
];

const plain = "GET /api HTTP/1.1\r\nHost: api\r\n\r\n";

const isGone = (peer: RawPeer): boolean => peer.isEnded || peer.isClosed;

/** Returns an HTTP/1.1 client that has completed one request, and keeps its socket open. */
async function kept(): Promise<RawPeer> {
  const peer = await connectRaw(scene.proxy.place.plainPort);
  peer.send(plain);
  await peer.expect("HTTP/1.1 200");
  return peer;
}

/**
 * Sends another request, so that this client becomes the one that was idle for the shortest time, whatever the response
 * is. Does nothing if the proxy has closed it.
 */
async function isAskedAgain(peer: RawPeer): Promise<void> {
  if (isGone(peer)) return;
  peer.text = "";
  peer.send(plain);
  for (let left = 40; left > 0 && peer.text === "" && !isGone(peer); left -= 1) await pause(25);
}

/**
 * Returns the ms until a new client is admitted and served. It does not use scene.proxy.state(), which forces a garbage
 * collection.
 */
async function untilLetIn(): Promise<number> {
  const beganAt = performance.now();
  const ask = async (): Promise<boolean> => {
    const peer = await connectRaw(scene.proxy.place.plainPort, false);
    peer.send(plain);
    const isServed = await peer.expect("HTTP/1.1 200").then(
      () => true,
      () => false,
    );
    peer.socket.destroy();
    return isServed;
  };
  while (performance.now() - beganAt < 20_000 && !(await ask())) await pause(100);
  return Math.round(performance.now() - beganAt);
}

test("A26: 200 MiB of usual heads that hang against a heap of 160: requests end, idle clients go, the watch and health live on", async () => {
  const prober = new HealthProber(`http://127.0.0.1:${scene.proxy.place.adminPort}/livez`, scene.proxy.pid);
  const idle = await Promise.all(Array.from({ length: 30 }, () => scene.attacker()));
  // All attackers connect before memory is short, because later no new client would be admitted.
  const attackers = await Promise.all(Array.from({ length: 150 }, () => scene.attacker()));
  // The proxy closes the most recently idle client first. The attackers are idle too: before their requests, and after
  // a refusal.
  const idleH1 = await Promise.all(Array.from({ length: 10 }, () => kept()));
  let busyMs = 0;
  const look = async () => {
    const now = await scene.proxy.state();
    busyMs = Math.max(busyMs, now.stalledMs);
    return now;
  };
  const isCrowded = async (): Promise<boolean> =>
    (await look()).refusals.includes("memory is short: idle clients are drained");
  let count = 0;
  for (; count < attackers.length && !(await isCrowded()); count += 1) {
    const client = attackers[count];
    for (let at = 0; at < 100; at += 1)
      client?.send(headers(2 * at + 1).get("/hang", ...unlike(`${count}-${at}-`)));
    await client?.flushed();
    await Promise.all(idleH1.map(isAskedAgain));
    await pause(50);
  }
  await pause(1000);
  const state = await look();
  const refusals = state.refusals.filter((reason) => reason.startsWith("memory is short"));
  assert.ok(refusals.length > 0, `${count} attackers, ${state.heapBytes} bytes live`);
  const lost = [...attackers, ...idle].filter(
    (client) => client.count(/^GOAWAY|^RST_STREAM/) > 0 || client.isClosed,
  );
  const goneH1 = idleH1.filter(isGone).length;
  for (const peer of idleH1) peer.socket.destroy();
  figure(`${goneH1} of 10 idle clients of HTTP/1.1 were sent away`);
  figure(
    `${count} attackers with 1.4 MiB of heads each; ${refusals.length} refusals, ${lost.length} of ${attackers.length + idle.length} lost something`,
  );
  assert.ok(goneH1 > 0, "no idle client of HTTP/1.1 was sent away");
  const { asked, failed, took, own } = await prober.times();
  const longest = (sorted: readonly number[]): number => Math.round(sorted.at(-1) ?? 0);
  figure(
    `health answered ${asked} times, ${failed} failed; p50 ${Math.round(took[asked >> 1] ?? 0)} ms, at most ${longest(took)} ms, and without the wait for a processor ${longest(own)} ms; the loop was busy for ${Math.round(busyMs)} ms at most`,
  );
  assert.is(failed, 0);
  assert.ok(longest(own) <= mostMs, `health took ${longest(own)} ms`);
  // Nothing forces a garbage collection here. The proxy must notice by itself that the memory is free again.
  for (const client of [...attackers, ...idle]) client.destroy();
  const letInMs = await untilLetIn();
  figure(`${letInMs} ms after they have gone a new client is let in`);
  assert.ok(letInMs < 10_000, `no client is let in after ${letInMs} ms`);
});

test("A26: 400 MiB of long heads that hang are held to the bound of all that waits, and memory is not short", async () => {
  const before = await scene.proxy.state();
  const attackers = await Promise.all(Array.from({ length: 40 }, () => scene.attacker()));
  for (const [count, client] of attackers.entries()) {
    for (let at = 0; at < 100; at += 1)
      client.send(
        continued(
          headers(2 * at + 1).get("/hang", ...unlike(`${count}-${at}-`, 50_000)),
          ...Array<number>(6).fill(16_000),
        ),
      );
    await client.flushed();
    await pause(50);
  }
  let after = await scene.proxy.state();
  const held = (): number => (after.heapBytes - before.heapBytes) >> 20;
  // V8 frees the memory of buffers in the background, after the collection that found them unused.
  for (let tries = 0; tries < 20 && held() >= 60; tries += 1) {
    await pause(250);
    after = await scene.proxy.state();
  }
  // A request that arrives while the buffers are full gets a 429 at once.
  const lost = attackers.reduce(
    (sum, client) => sum + client.count(/^(RST_STREAM|HEADERS \d+ :status=429)/),
    0,
  );
  const heldMiB = held();
  figure(`${lost} of 4,000 long heads were reset or refused, ${heldMiB} MiB are held`);
  assert.ok(
    after.failures.some((message) => message.startsWith("Buffered bytes exceed the limit of this process")),
  );
  assert.ok(lost > 3000 && heldMiB < 80, `${lost} were reset or refused, ${heldMiB} MiB are held`);
  assert.is(after.refusals.length, before.refusals.length);
});

test("the honest twin of A26: when it is over everybody is let in again, and served", async () => {
  for (let tries = 0; tries < 100; tries += 1) {
    const state = await scene.proxy.state();
    if (state.heapBytes < 100 << 20) break;
    await pause(100);
  }
  const client = await scene.attacker();
  const long = headers(1).get("/fields", ...unlike("honest", 50_000));
  client.send(continued(long, ...Array<number>(6).fill(16_000)));
  await client.expect(/^HEADERS 1 :status=200/);
});

test.run();
