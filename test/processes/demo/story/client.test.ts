import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Apiserver } from "../../../../demo/apiserver/apiserver.ts";
import type { Answer, Ask } from "../../../../demo/apiserver/ask.ts";
import { newCluster } from "../../../../demo/apiserver/cluster.ts";
import { Host, type HostOptions } from "../../../../demo/apiserver/host.ts";
import { type Json, mapOf } from "../../../../demo/objects/json.ts";
import { DemoClient } from "../../../../demo/story/client.ts";
import { wallClock } from "../../../../src/base/clock.ts";
import { Failure } from "../../../../src/base/failure.ts";
import { testPki } from "../../../support/pki.ts";
import { within } from "../../../support/within.ts";

const test = suite("demo/story/client");
const { authority, serving } = await testPki();
const ca = authority.certificate;
const store = newCluster(wallClock);
const apiserver = new Apiserver({ store, clock: wallClock, name: "one" });
const host = new Host({ apiserver, ...serving });
const port = await host.start();
if (port instanceof Failure) throw new Error(port.message);
test.after(() => host.stop());
const configmaps = "/api/v1/namespaces/default/configmaps";

test("a request is answered, and a watch without a watcher keeps its events", async () => {
  const client = new DemoClient({ port, ca });
  const watch = await within(20_000, "its watch", client.watch(`${configmaps}?watch=1`));
  assert.is(await client.ask(`POST ${configmaps}`, { metadata: { name: "a" } }), 201);
  const { status, body } = await client.read(`GET ${configmaps}/a`);
  assert.equal([status, mapOf(mapOf(body)["metadata"])["name"]], [200, "a"]);
  while (watch.events.length === 0) await new Promise((passed) => setTimeout(passed, 5));
  assert.is(mapOf(watch.events[0])["type"], "ADDED");
  await within(20_000, "the watch's end", watch.end());
  client.close();
});

test("a server name that the certificate lacks, and a closed session, give status 0", async () => {
  const stranger = new DemoClient({ port, ca, serverName: "elsewhere.example.test" });
  assert.is(await within(20_000, "no answer", stranger.ask(`GET ${configmaps}`)), 0);
  assert.is(await within(20_000, "no answer either", stranger.ask(`GET ${configmaps}`)), 0);
  assert.equal((await within(20_000, "no watch", stranger.watch(configmaps))).events, []);
  const early = new DemoClient({ port, ca });
  early.close();
  assert.is(await within(20_000, "none after its end", early.ask(`GET ${configmaps}`)), 0);
});

test("a response after the time limit gives status 0", async () => {
  const client = new DemoClient({ port, ca, withinMs: 50 });
  assert.is(await within(20_000, "a watch as an answer", client.ask(`GET ${configmaps}?watch=1`)), 0);
  client.close();
});

test("a watch reports each event and its clean end", async () => {
  const { client, host: other } = await newPair();
  const first = Promise.withResolvers<Json>();
  const over = Promise.withResolvers<boolean>();
  void client.watch(`${configmaps}?watch=1&resourceVersion=5`, { event: first.resolve, ended: over.resolve });
  await client.ask(`POST ${configmaps}`, { metadata: { name: "a" } });
  assert.is(mapOf(await within(20_000, "an event", first.promise))["type"], "ADDED");
  other.stop();
  assert.is(await within(20_000, "the end", over.promise), true);
  client.close();
});

test("a request without an answer in time is cancelled", async () => {
  const cancelled = Promise.withResolvers<void>();
  const handle = (_ask: Ask, answer: Answer): void => answer.onGone(() => cancelled.resolve());
  const { client, host: other } = await newPair({ handle, endWatches() {} }, 50);
  assert.match((await within(20_000, "no answer", client.read(`GET ${configmaps}`))).problem, "50 ms");
  await within(20_000, "its cancellation", cancelled.promise);
  client.close();
  other.stop();
});

test("a watch that is refused, and one whose connection is lost, have no clean end", async () => {
  const { client, host: other } = await newPair();
  for (const path of ["/apis/none/v1/things?watch=1", `${configmaps}?watch=1&resourceVersion=5`]) {
    const over = Promise.withResolvers<boolean>();
    const heard: unknown[] = [];
    await client.watch(path, { event: (line) => heard.push(line), ended: over.resolve });
    if (!path.includes("none")) client.close();
    assert.equal([await within(20_000, "its end", over.promise), heard], [false, []]);
  }
  assert.is(client.isOpen, false);
  other.stop();
});

test("a request on a connection that is lost meanwhile has no answer", async () => {
  const { client, host: other } = await newPair();
  assert.is(await client.ask(`GET ${configmaps}`), 200);
  const pending = client.read(`GET ${configmaps}`);
  client.close();
  assert.is((await within(20_000, "no answer", pending)).status, 0);
  other.stop();
});

/** Returns a client, and the host that serves its apiserver. */
async function newPair(
  served: HostOptions["apiserver"] = new Apiserver({
    store: newCluster(wallClock),
    clock: wallClock,
    name: "two",
  }),
  withinMs = 20_000,
): Promise<{ client: DemoClient; host: Host }> {
  const made = new Host({ apiserver: served, ...serving });
  const bound = await made.start();
  if (bound instanceof Failure) throw new Error(bound.message);
  return { client: new DemoClient({ port: bound, ca, withinMs }), host: made };
}

test.run();
