/**
 * A19: a client requests much and reads little. Buffered bytes are limited, the bystander's upstream connection is not
 * blocked, and all memory is freed afterwards.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { pause, sceneOf } from "../../support/attack.ts";
import { headers, raw, settings, windowUpdate } from "../../support/h2-frames.ts";
import type { RawH2 } from "../../support/raw-h2.ts";

const test = suite("attacks/whole/stalled-readers");
const MiB = 1 << 20;

const scene = sceneOf(test);

/**
 * The backend accepts the attackers' token. Clients without an accepted credential may have far fewer requests at once
 * (A43).
 */
const accepted = ["authorization", "Bearer stalled"] as const;

const ids = (count: number): number[] => Array.from({ length: count }, (_, at) => 2 * at + 1);

/** Returns a client that has requested this many lists, and reads no byte of any. */
async function stalled(count: number): Promise<RawH2> {
  const client = await scene.attacker(settings({ INITIAL_WINDOW_SIZE: 0 }));
  client.send(...ids(count).map((id) => headers(id).get("/big/20971520", accepted)));
  await client.until("the heads", () => client.count(/^HEADERS \d+ :status=200/) === count);
  return client;
}

/** Returns the largest growth of the proxy's live memory, in and outside of the heap, during the next `ms`. */
async function mostGrown(ms: number, before: number): Promise<number> {
  let most = 0;
  for (const beganAt = performance.now(); performance.now() - beganAt < ms; await pause(100))
    most = Math.max(most, (await scene.proxy.state()).heapBytes - before);
  return most;
}

test("A19: a hundred lists of 20 MiB that the client does not read wait at their backend", async () => {
  const { heapBytes } = await scene.proxy.state();
  await stalled(100);
  const most = await mostGrown(2000, heapBytes);
  process.stdout.write(`\nfigure: a hundred unread lists hold ${Math.round(most / MiB)} MiB\n`);
  // 100 windows of 256 KiB, and the same amount in transit.
  assert.ok(most < 96 * MiB, `${most} bytes wait`);
});

test("A19: a thousand of them, over ten clients; when they are gone so is the memory", async () => {
  const { heapBytes } = await scene.proxy.state();
  for (let count = 0; count < 10; count += 1) await stalled(100);
  const most = await mostGrown(1000, heapBytes);
  process.stdout.write(`\nfigure: a thousand unread lists hold ${Math.round(most / MiB)} MiB\n`);
  assert.ok(most > 128 * MiB && most < 640 * MiB, `${most} bytes wait`);
});

test("A19: the same over ten clients whose streams' windows are open, and the sessions' shut", async () => {
  const { heapBytes } = await scene.proxy.state();
  const clients: RawH2[] = [];
  for (let count = 0; count < 10; count += 1) {
    const client = await scene.attacker(settings({ INITIAL_WINDOW_SIZE: 0x7fff_ffff }));
    client.send(...ids(30).map((id) => headers(id).get("/big/20971520", accepted)));
    clients.push(client);
  }
  const most = await mostGrown(2000, heapBytes);
  assert.ok(most < 192 * MiB, `${most} bytes wait`);
});

test("A19: windows that are opened by one byte at a time end the session", async () => {
  const client = await scene.attacker(settings({ INITIAL_WINDOW_SIZE: 0 }));
  client.send(headers(1).get("/big/1000000"));
  await client.expect(/^HEADERS 1 :status=200/);
  for (let round = 0; round < 300 && client.count(/^GOAWAY/) === 0; round += 1) {
    client.send(...Array.from({ length: 50 }, () => windowUpdate(1, 1)));
    await pause(5);
  }
  await client.expect(/^GOAWAY \d+ ENHANCE_YOUR_CALM/);
});

test("A7: references that decode to 100 KiB each, a hundred at once, held by shut windows, cost no memory", async () => {
  const { heapBytes } = await scene.proxy.state();
  const entry = Buffer.concat([
    Buffer.from([0x82, 0x87, 0x44, 5]),
    Buffer.from("/hang"),
    Buffer.from([0x41, 1, 0x61, 0x40, 3]),
    Buffer.from("x-a"),
    Buffer.from([0x7f, 0xa1, 0x1e]),
    Buffer.alloc(4000, 0x62),
  ]);
  const reference = Buffer.concat([Buffer.from([0x82, 0x87, 0xc0, 0xbf]), Buffer.alloc(24, 0xbe)]);
  for (let count = 0; count < 5; count += 1) {
    const client = await scene.attacker(settings({ INITIAL_WINDOW_SIZE: 0 }));
    client.send(raw(1, 5, 1, entry), ...ids(99).map((id) => raw(1, 5, id + 2, reference)));
    await client.flushed();
  }
  const most = await mostGrown(1500, heapBytes);
  process.stdout.write(`\nfigure: 500 heads of 100 KiB by reference take ${Math.round(most / MiB)} MiB\n`);
  assert.ok(most < 64 * MiB, `${most} bytes more are live`);
});

test("the honest twin of A19: a reader that sleeps for three seconds in the midst of its list gets all of it", async () => {
  const client = await scene.attacker(settings({ INITIAL_WINDOW_SIZE: MiB }));
  client.send(windowUpdate(0, 0x7000_0000), headers(1).get("/big/8388608"));
  await client.until("the first MiB", () => (client.bodies.get(1) ?? 0) === MiB);
  await pause(3000);
  for (let at = 0; at < 7 * 16; at += 1) {
    client.send(windowUpdate(1, MiB / 16));
    await pause(5);
  }
  await client.expect(/^DATA 1 .*END$/);
  assert.is(client.bodies.get(1), 8 * MiB);
});

test.run();
