import { once } from "node:events";
import http2 from "node:http2";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Apiserver } from "../../../demo/apiserver/apiserver.ts";
import { newCluster } from "../../../demo/apiserver/cluster.ts";
import { Host } from "../../../demo/apiserver/host.ts";
import type { DemoBackend } from "../../../demo/story/files.ts";
import { NaiveProxy } from "../../../demo/story/naive-proxy.ts";
import { wallClock } from "../../../src/base/clock.ts";
import { Failure } from "../../../src/base/failure.ts";
import { manualClock } from "../../support/clock.ts";
import { testPki } from "../../support/pki.ts";
import { unansweredPort } from "../../support/unanswered.ts";
import { within } from "../../support/within.ts";

const test = suite("demo/story/naive-proxy");
const { authority, serving } = await testPki();
const store = newCluster(wallClock);
/** Runs also after a test that fails, because open servers would keep this process alive. */
const stops: (() => void)[] = [];
test.after.each(() => {
  for (const stop of stops.splice(0)) stop();
});

/**
 * Starts a proxy with backends of these names. The proxy's time, and therefore its health checks, advances only by
 * `clock`.
 */
async function scene(names: readonly string[]) {
  const asked: string[] = [];
  const hosts: Host[] = [];
  const backends: DemoBackend[] = [];
  for (const name of names) {
    const apiserver = new Apiserver({ store, clock: wallClock, name });
    const handle: Apiserver["handle"] = (ask, answer) => {
      asked.push(name);
      apiserver.handle(ask, answer);
    };
    const endWatches = (): void => apiserver.endWatches();
    const host = new Host({ apiserver: { handle, endWatches }, ...serving });
    const port = await host.start();
    if (port instanceof Failure) throw new Error(port.message);
    hosts.push(host);
    backends.push({ name, host: "127.0.0.1", port });
  }
  const clock = manualClock();
  const changes: string[] = [];
  const proxy = new NaiveProxy({ backends, ca: authority.certificate, pair: serving, clock });
  proxy.onChange((backend, isUp) => changes.push(`${backend} ${isUp}`));
  const port = await proxy.start();
  if (port instanceof Failure) throw new Error(port.message);
  const session = http2.connect(`https://127.0.0.1:${port}`, { ca: authority.certificate });
  session.on("error", () => {});
  stops.push(() => {
    session.destroy();
    proxy.stop();
    for (const host of hosts) host.stop();
  });
  return { asked, hosts, clock, changes, session };
}

async function get(session: http2.ClientHttp2Session, path: string): Promise<[number, string]> {
  const stream = session.request({ ":path": path });
  const [head] = await within(20_000, `a head for ${path}`, once(stream, "response"));
  let text = "";
  stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
  await within(20_000, `the end of ${path}`, once(stream, "end"));
  return [Number((head as http2.IncomingHttpHeaders)[":status"]), text];
}

/** Waits in real time until the proxy has sessions to its backends. */
async function untilServed(session: http2.ClientHttp2Session): Promise<void> {
  for (let tries = 0; tries < 500; tries += 1) {
    const [status] = await get(session, "/livez");
    if (status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/**
 * Advances the clock by one check interval at a time until `isTrue`, and lets real time pass in between for the
 * sockets.
 */
async function until(clock: ReturnType<typeof manualClock>, isTrue: () => boolean): Promise<void> {
  for (let tries = 0; tries < 100 && !isTrue(); tries += 1) {
    clock.advance(1_000);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test("requests take turns over the backends, and answers come back whole", async () => {
  const { asked, session } = await scene(["one", "two"]);
  await untilServed(session);
  await new Promise((resolve) => setTimeout(resolve, 200));
  asked.length = 0;
  for (let count = 0; count < 4; count += 1) assert.equal(await get(session, "/livez"), [200, "ok"]);
  assert.equal(asked.toSorted(), ["one", "one", "two", "two"]);
});

test("a backend that is gone fails its checks and is taken out", async () => {
  const { changes, clock, hosts, session } = await scene(["one"]);
  await untilServed(session);
  hosts[0]?.stop();
  await until(clock, () => changes.length > 0);
  assert.equal(changes, ["one false"]);
  assert.equal(await get(session, "/livez"), [503, ""]);
});

test("so is one whose host answers no SYN, and no socket to it outlives the proxy", async () => {
  const hole = await unansweredPort();
  const clock = manualClock();
  const changes: string[] = [];
  const proxy = new NaiveProxy({
    backends: [{ name: "one", host: "127.0.0.1", port: hole.port }],
    ca: authority.certificate,
    pair: serving,
    clock,
  });
  proxy.onChange((backend, isUp) => changes.push(`${backend} ${isUp}`));
  stops.push(hole.stop, () => proxy.stop());
  await proxy.start();
  const dialled = (): number =>
    process.getActiveResourcesInfo().filter((one) => one === "TCPSocketWrap").length;
  const before = dialled();
  await until(clock, () => changes.length > 0);
  assert.equal(changes, ["one false"]);
  proxy.stop();
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.ok(dialled() < before, `${dialled()} sockets, ${before} before`);
});

test("one that passes its checks is left in", async () => {
  const { changes, clock, asked, session } = await scene(["one"]);
  await untilServed(session);
  for (let checks = 0; checks < 8; checks += 1) {
    const before = asked.length;
    clock.advance(2_000);
    // A check times out after 2 s of this clock. So the clock stands still until the check is answered, however busy
    // the machine is.
    for (let tries = 0; tries < 1_000 && asked.length === before; tries += 1)
      await new Promise((resolve) => setTimeout(resolve, 10));
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.equal(changes, []);
});

test.run();
