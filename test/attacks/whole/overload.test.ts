/**
 * A26: heads that hang in their thousands fill the heap. Long ones end first, by the bound of all that waits; usual ones are
 * counted by no bound but the heap's: first no new client is let in, then idle ones end, then requests; the watch lives on.
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
 * What an answer of health may take, asked by a process of its own, but for what that one and the proxy's first thread wait for
 * a processor. Collections of a heap that is nearly full take most of both cores, and what the thread that answers waits
 * for one is in it: half of what a kubelet waits.
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
  // Of a heap that grew by 120 MiB nothing stays; 200 sockets' small pieces are malloc's.
  await scene.settled({ mostLeftBytes: 48 << 20 });
});
test.after(() => scene.close());

/** Fields' worth of bytes that no other head has, 14 KiB of them or 100. */
const unlike = (word: string, bytes = 7000): readonly (readonly [string, string])[] => [
  ["x-one", word.padEnd(bytes, word)],
  ["x-two", word.padEnd(bytes + 1, word)],
];

const plain = "GET /api HTTP/1.1\r\nHost: api\r\n\r\n";

const isGone = (peer: RawPeer): boolean => peer.isEnded || peer.isClosed;

/** A client of HTTP/1.1 that has asked once and keeps its socket. */
async function kept(): Promise<RawPeer> {
  const peer = await connectRaw(scene.proxy.place.plainPort);
  peer.send(plain);
  await peer.expect("HTTP/1.1 200");
  return peer;
}

/** Has been idle for less time than all others then, whatever it is answered; or was sent away. */
async function isAskedAgain(peer: RawPeer): Promise<void> {
  if (isGone(peer)) return;
  peer.text = "";
  peer.send(plain);
  for (let left = 40; left > 0 && peer.text === "" && !isGone(peer); left -= 1) await pause(25);
}

/** Milliseconds until a new client is let in and served. Not by scene.proxy.state(), which collects garbage. */
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
  // All of them before memory is short: afterwards no client would be let in.
  const attackers = await Promise.all(Array.from({ length: 150 }, () => scene.attacker()));
  // The client that became idle last goes first: attackers are idle, too, before they ask, and once they were refused.
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
  // Nothing makes V8 collect now: the proxy looks by itself whether they are gone.
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
  const after = await scene.proxy.state();
  // One that arrives while too much waits is answered 429 at once.
  const lost = attackers.reduce(
    (sum, client) => sum + client.count(/^(RST_STREAM|HEADERS \d+ :status=429)/),
    0,
  );
  const heldMiB = (after.heapBytes - before.heapBytes) >> 20;
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
