/**
 * A60: events that no apiserver would send. The watch decoder gives up instead of buffering them, and no other client
 * notices.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { sceneOf } from "../../support/attack.ts";
import { headers, settings, windowUpdate } from "../../support/h2-frames.ts";
import type { RawH2 } from "../../support/raw-h2.ts";

const test = suite("attacks/whole/hostile-events");
const MiB = 1 << 20;

const scene = sceneOf(test);

/** Returns a client that reads everything it receives. */
async function reader(): Promise<RawH2> {
  const client = await scene.attacker(settings({ INITIAL_WINDOW_SIZE: 0x7fff_ffff }));
  client.send(windowUpdate(0, 0x7fff_0000));
  return client;
}

const received = (client: RawH2): number => client.bodies.get(1) ?? 0;

test("A60: a line of 40 MiB without an end is held up to 16 MiB, and goes on as it comes then", async () => {
  const before = await scene.proxy.state();
  const client = await reader();
  client.send(headers(1).get("/api/v1/pods/line/40?watch=true"));
  await client.until("all of it", () => received(client) >= 40 * MiB, 60_000);
  // The buffers of the socket are freed only after its last write has completed.
  let held = Number.POSITIVE_INFINITY;
  for (let look = 0; look < 20 && held > 8 * MiB; look += 1) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    held = (await scene.proxy.state()).heapBytes - before.heapBytes;
  }
  assert.ok(held < 8 * MiB, `${held} are held`);
});

test("A60: ten such lines at once, none of which is read on, cost no more than the budget", async () => {
  const before = await scene.proxy.state();
  const client = await scene.attacker(settings({ INITIAL_WINDOW_SIZE: 0 }));
  client.send(
    ...Array.from({ length: 10 }, (_, at) => headers(2 * at + 1).get("/api/v1/pods/line/40?watch=true")),
  );
  await client.until("the heads", () => client.count(/^HEADERS \d+ :status=200/) === 10);
  let most = 0;
  for (let look = 0; look < 20; look += 1) {
    const state = await scene.proxy.state();
    most = Math.max(most, state.rssBytes - before.rssBytes);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  process.stdout.write(`\nfigure: ten endless events hold ${Math.round(most / MiB)} MiB at most\n`);
  assert.ok(most < 10 * 24 * MiB, `${most} bytes`);
});

for (const [what, path] of [
  ["100,000 brackets, one in the other,", "/api/v1/pods/deep/100000?watch=true"],
  ["a version of a million digits", "/api/v1/pods/digits/1000000?watch=true"],
] as const)
  test(`A60: an event with ${what} goes on as it is, and the process with it`, async () => {
    const client = await reader();
    client.send(headers(1).get(path));
    await client.until(
      "the event",
      () => (client.texts.get(1) ?? "").length > 0 && received(client) > 100_000,
    );
    assert.is(client.count(/^RST_STREAM|^GOAWAY/), 0);
  });

test("the honest twin of A60: an object of 12 MiB, as large as etcd takes four of, arrives whole", async () => {
  const client = await reader();
  client.send(headers(1).get("/api/v1/secrets/big/12582912"));
  await client.expect(/^DATA 1 .*END$/, 60_000);
  assert.is(received(client), 12 * MiB);
});

test.run();
