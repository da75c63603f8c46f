import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { Failure } from "../../../src/base/failure.ts";
import { Apiserver } from "../../../src/demo/apiserver/apiserver.ts";
import type { Answer, Ask } from "../../../src/demo/apiserver/ask.ts";
import { newCluster } from "../../../src/demo/apiserver/cluster.ts";
import { Host } from "../../../src/demo/apiserver/host.ts";
import { mapOf } from "../../../src/demo/objects/json.ts";
import { DemoClient } from "../../../src/demo/story/client.ts";
import { Journal } from "../../../src/events/journal.ts";
import { testPki } from "../../support/pki.ts";
import { within } from "../../support/within.ts";

const test = suite("demo/story/client");
const { authority, serving } = await testPki();
const configmaps = "/api/v1/namespaces/default/configmaps";

async function newPair(): Promise<{ client: DemoClient; host: Host }> {
  const journal = new Journal(wallClock);
  const apiserver = new Apiserver({ store: newCluster(wallClock), clock: wallClock, name: "one" });
  const host = new Host({ apiserver, journal, ...serving });
  const port = await host.start();
  if (port instanceof Failure) throw new Error(port.message);
  const secured = { ca: authority.certificate, serverName: "127.0.0.1" };
  return { client: new DemoClient({ name: "one", host: "127.0.0.1", port, tls: secured }, journal), host };
}

test("it asks, and is told status and body", async () => {
  const { client, host } = await newPair();
  const body = { metadata: { name: "a" } };
  const reply = await within(20_000, "a reply", client.ask({ method: "POST", path: configmaps, body }));
  assert.ok(!(reply instanceof Failure) && reply.status === 201);
  client.close();
  host.stop();
});

test("a watch tells each event, and its end", async () => {
  const { client, host } = await newPair();
  const first = Promise.withResolvers<unknown>();
  const over = Promise.withResolvers<boolean>();
  client.watch(`${configmaps}?watch=1&resourceVersion=5`, { event: first.resolve, ended: over.resolve });
  await client.ask({ method: "POST", path: configmaps, body: { metadata: { name: "a" } } });
  const event = await within(20_000, "an event", first.promise);
  assert.is(mapOf(event as never)["type"], "ADDED");
  host.stop();
  assert.is(await within(20_000, "the end", over.promise), true);
  client.close();
});

test("an answer that does not come in time is a failure, and is no longer waited for", async () => {
  const journal = new Journal(wallClock);
  const cancelled = Promise.withResolvers<void>();
  const apiserver = {
    handle: (_ask: Ask, answer: Answer): void => answer.onGone(() => cancelled.resolve()),
    endWatches() {},
  };
  const host = new Host({ apiserver, journal, ...serving });
  const port = await host.start();
  if (port instanceof Failure) throw new Error(port.message);
  const secured = { ca: authority.certificate, serverName: "127.0.0.1" };
  const client = new DemoClient({ name: "one", host: "127.0.0.1", port, tls: secured }, journal);
  const asked = client.ask({ method: "GET", path: configmaps }, 50);
  assert.instance(await within(20_000, "the failure", asked), Failure);
  await within(20_000, "its cancellation", cancelled.promise);
  client.close();
  host.stop();
});

test("a watch that is refused has no events and has not ended cleanly", async () => {
  const { client, host } = await newPair();
  const over = Promise.withResolvers<boolean>();
  const heard: unknown[] = [];
  client.watch("/apis/none/v1/things?watch=1", { event: (line) => heard.push(line), ended: over.resolve });
  assert.equal([await within(20_000, "its end", over.promise), heard], [false, []]);
  client.close();
  host.stop();
});

test("what it asks for after the connection is lost is a failure", async () => {
  const { client, host } = await newPair();
  await client.ask({ method: "GET", path: configmaps });
  const pending = client.ask({ method: "GET", path: configmaps });
  client.close();
  assert.instance(await within(20_000, "a failure", pending), Failure);
  host.stop();
});

test.run();
