import { suite } from "uvu";
import * as assert from "uvu/assert";
import { pause, sceneOf } from "../../support/attack.ts";
import { data, headers, priority, raw, reset, windowUpdate } from "../../support/h2-frames.ts";

const test = suite("attacks/whole/churn");

const scene = sceneOf(test);

/** Returns this many stream ids: odd numbers from 1 on. */
const ids = (count: number): number[] => Array.from({ length: count }, (_, at) => 2 * at + 1);
const calm = /GOAWAY \d+ ENHANCE_YOUR_CALM/;

test("A1: a thousand requests that are reset at once end the session, and the backend sees no more than the budget", async () => {
  const before = scene.target.asked;
  const client = await scene.attacker();
  client.send(...ids(1000).flatMap((id) => [headers(id).get("/api/v1/hang"), reset(id, "CANCEL")]));
  await client.expect(calm);
  await client.closed();
  assert.ok(scene.target.asked - before < 300 + 60, `${scene.target.asked - before} were asked`);
});

test("A1: many clients that each stay below their budget do not earn the shared upstream connections an end", async () => {
  const { connectionsClosed } = await scene.proxy.state();
  const writer = await scene.attacker();
  writer.send(headers(1).post("/api/v1/hang"));
  for (let round = 0; round < 5; round += 1) {
    const client = await scene.attacker();
    client.send(...ids(150).flatMap((id) => [headers(id).get("/api/v1/hang"), reset(id, "CANCEL")]));
    client.send(headers(1001).get("/api/v1/pods"));
    await client.expect(/HEADERS 1001 :status=200/);
  }
  const heard = writer.heard.filter((line) => /HEADERS|RST_STREAM|GOAWAY/.test(line));
  const state = await scene.settled();
  // The proxy closes upstream connections after many resets, but only when no stream is left on them.
  assert.equal(new Set(state.connectionsClosed.slice(connectionsClosed.length)), new Set(["ended"]));
  assert.equal(heard, []);
});

test("A1: what an attack has opened upstream is closed 5 s after it", async () => {
  const connections = async (): Promise<number> => {
    const { connectionsOpened, connectionsClosed } = await scene.proxy.state();
    return connectionsOpened - connectionsClosed.length;
  };
  const before = scene.target.asked;
  const clients = await Promise.all(Array.from({ length: 8 }, () => scene.attacker()));
  for (const client of clients) client.send(...ids(95).map((id) => headers(id).get("/api/v1/hang")));
  for (let tries = 0; tries < 100 && scene.target.asked - before < 8 * 95; tries += 1) await pause(50);
  const most = await connections();
  for (const client of clients) client.send(...ids(95).map((id) => reset(id, "CANCEL")));
  assert.ok(most > 6, `${most} connections after it`);
  await pause(5000);
  // Two warm connections, those of the bystander, and those that the last attackers used.
  const left = await connections();
  assert.ok(left <= 5, `${most} connections after it, ${left} are left`);
});

test("A1's honest twin: a hundred watches are cancelled at once, three times over", async () => {
  const client = await scene.attacker();
  for (let round = 0; round < 3; round += 1) {
    const mine = ids(100).map((id) => 200 * round + id);
    client.send(...mine.map((id) => headers(id).get("/api/v1/pods?watch=true")));
    for (const id of mine) await client.expect(new RegExp(`^HEADERS ${id} :status=200`));
    client.send(...mine.map((id) => reset(id, "CANCEL")));
  }
  client.send(headers(999).get("/api/v1/pods"));
  await client.expect(/^HEADERS 999 :status=200/);
});

const provoked = [
  ["a WINDOW_UPDATE of 0", (id: number) => [windowUpdate(id, 0)]],
  ["a PRIORITY of four bytes", (id: number) => [raw(2, 0, id, "1234")]],
  ["a PRIORITY on itself", (id: number) => [priority(id, id)]],
  ["windows beyond 2^31 - 1", (id: number) => [windowUpdate(id, 0x7fff_ffff)]],
  ["HEADERS after the end", (id: number) => [headers(id).get("/again")]],
  ["DATA after the end", (id: number) => [data(id, "x")]],
] as const;

for (const [what, frames] of provoked) {
  test(`A2: provoking resets with ${what} costs what resetting would`, async () => {
    const before = scene.target.asked;
    const client = await scene.attacker();
    client.send(...ids(1000).flatMap((id) => [headers(id).get("/api/v1/hang"), ...frames(id)]));
    await client.expect(/GOAWAY/);
    await client.closed();
    assert.ok(scene.target.asked - before < 300 + 60, `${scene.target.asked - before} were asked`);
  });
}

test("A3: the hundred and first stream is refused, two hundred refusals end the session", async () => {
  const client = await scene.attacker();
  client.send(...ids(101).map((id) => headers(id).get("/api/v1/hang")));
  await client.expect(/RST_STREAM 201 REFUSED_STREAM/);
  client.send(reset(1, "CANCEL"), headers(203).get("/api/v1/pods"));
  await client.expect(/HEADERS 203 :status=200/);
  client.send(...ids(400).map((id) => headers(1000 + id).get("/api/v1/hang")));
  await client.expect(calm);
  await client.closed();
});

test("A4: thousands of honest requests buy no flood", async () => {
  const client = await scene.attacker();
  for (let round = 0; round < 20; round += 1) {
    const mine = ids(100).map((id) => 200 * round + id);
    client.send(...mine.map((id) => headers(id).get("/api/v1/pods")));
    await client.until("the answers", () => mine.every((id) => (client.bodies.get(id) ?? 0) > 0));
    client.send(windowUpdate(0, 10_000));
  }
  client.send(...ids(500).map((id) => priority(100_000 + id, 0)));
  await client.expect(calm);
  await client.closed();
});

test.run();
