/** Upgrades against the whole proxy: only a response of the backend that accepts the Upgrade opens a tunnel. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { pause, sceneOf } from "../../support/attack.ts";
import { connectRaw, type RawPeer } from "../../support/raw.ts";

const test = suite("attacks/whole/upgrade");

const scene = sceneOf(test);

const connect = (): Promise<RawPeer> => connectRaw(scene.proxy.place.plainPort);
const upgrade = (path: string, ...fields: readonly string[]): string =>
  [`POST ${path} HTTP/1.1`, "Host: api", "Connection: Upgrade", "Upgrade: SPDY/3.1", ...fields, "", ""].join(
    "\r\n",
  );
const smuggled = "GET /smuggled HTTP/1.1\r\nHost: api\r\n\r\n";

test("A35: behind an Upgrade that was refused not one more byte reaches the backend", async () => {
  const client = await connect();
  client.send(upgrade("/refused/exec") + smuggled);
  const answer = await client.ended();
  assert.match(answer, /^HTTP\/1.1 403 /);
  client.send(smuggled);
  await pause(200);
  assert.is(scene.target.afterRefusal, "");
  assert.is(scene.target.seen("/smuggled"), 0);
  client.socket.destroy();
});

test("A34: what a client says before the Upgrade is granted waits, and is the tunnel's then", async () => {
  const client = await connect();
  client.send(`${upgrade("/exec", "Content-Length: 0")}${smuggled}`);
  const answer = await client.expect(smuggled);
  assert.match(answer, /^HTTP\/1.1 101 /);
  assert.is(scene.target.seen("/smuggled"), 0);
  client.socket.destroy();
});

test("A34: five hundred Upgrades that break off anywhere leave no socket and no tunnel behind", async () => {
  const whole = upgrade("/exec");
  for (let round = 0; round < 500; round += 1) {
    const client = await connect();
    client.send(whole.slice(0, (round * 7) % (whole.length + 1)));
    if (round % 3 === 0) client.socket.resetAndDestroy();
    else client.socket.destroy();
  }
  const upgrades = async (): Promise<string | undefined> =>
    /requests_active[a-z_]*\{kind="upgrade"\} (\d+)/.exec(await scene.metrics())?.[1];
  for (let tries = 0; tries < 100 && (await upgrades()) !== "0"; tries += 1) await pause(50);
  assert.is(await upgrades(), "0");
});

test("A19: a tunnel whose reader sleeps is held back at the backend, and costs no memory", async () => {
  const before = await scene.proxy.state();
  const client = await connect();
  client.send(upgrade("/exec"));
  await client.expect("\r\n\r\n");
  client.socket.pause();
  const block = Buffer.alloc(1 << 16, 0x78);
  let isTaken = true;
  for (let count = 0; count < 400 && isTaken; count += 1) {
    isTaken = client.socket.write(block) || client.socket.writableLength < 24 << 20;
    if (count % 16 === 0) await pause(5);
  }
  // The memory of collected buffers counts until V8 has swept them in the background.
  let held = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < 10 && held >= 8 << 20; tries += 1) {
    await pause(500);
    const during = await scene.proxy.state();
    held = during.heapBytes - before.heapBytes;
  }
  assert.ok(held < 8 << 20, `${held} bytes are held`);
  client.socket.destroy();
});

test("A34, A35, A36, the honest twin: exec, with bytes both ways and a pause, over Upgrade", async () => {
  const client = await connect();
  client.send(upgrade("/exec", "Content-Length: 0", "Authorization: Bearer x"));
  await client.expect("\r\n\r\n");
  for (const word of ["ls\n", `${"x".repeat(100_000)}!`, "\0\r\n\r\nGET / HTTP/1.1\r\n"]) {
    client.send(word);
    await client.expect(word.slice(-40));
    await pause(200);
  }
  client.socket.destroy();
});

test.run();
