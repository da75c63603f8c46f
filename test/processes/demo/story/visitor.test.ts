import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../../src/base/clock.ts";
import { Failure } from "../../../../src/base/failure.ts";
import { Apiserver } from "../../../../src/demo/apiserver/apiserver.ts";
import { newCluster } from "../../../../src/demo/apiserver/cluster.ts";
import { Host } from "../../../../src/demo/apiserver/host.ts";
import { mapOf } from "../../../../src/demo/objects/json.ts";
import { Visitor } from "../../../../src/demo/story/visitor.ts";
import { Journal } from "../../../../src/events/journal.ts";
import { testPki } from "../../../support/pki.ts";
import { within } from "../../../support/within.ts";

const test = suite("demo/story/visitor");
const { authority, serving } = await testPki();
const ca = authority.certificate;
const store = newCluster(wallClock);
const apiserver = new Apiserver({ store, clock: wallClock, name: "one" });
const host = new Host({ apiserver, journal: new Journal(wallClock), ...serving });
const port = await host.start();
if (port instanceof Failure) throw new Error(port.message);
test.after(() => host.stop());
const configmaps = "/api/v1/namespaces/default/configmaps";

test("it is told what it asks for, and sees what happens", async () => {
  const visitor = new Visitor({ port, ca });
  const watch = await within(20_000, "its watch", visitor.watch(`${configmaps}?watch=1`));
  assert.is(await visitor.ask(`POST ${configmaps}`, { metadata: { name: "a" } }), 201);
  const { status, body } = await visitor.read(`GET ${configmaps}/a`);
  assert.equal([status, mapOf(mapOf(body)["metadata"])["name"]], [200, "a"]);
  while (watch.events.length === 0) await new Promise((passed) => setTimeout(passed, 5));
  assert.is(mapOf(watch.events[0])["type"], "ADDED");
  await within(20_000, "the watch's end", watch.end());
  visitor.close();
});

test("a name that the certificate has not, and a proxy that is gone, are no answer", async () => {
  const stranger = new Visitor({ port, ca, serverName: "elsewhere.example.test" });
  assert.is(await within(20_000, "no answer", stranger.ask(`GET ${configmaps}`)), 0);
  assert.is(await within(20_000, "no answer either", stranger.ask(`GET ${configmaps}`)), 0);
  assert.equal((await within(20_000, "no watch", stranger.watch(configmaps))).events, []);
  const early = new Visitor({ port, ca });
  early.close();
  assert.is(await within(20_000, "none after its end", early.ask(`GET ${configmaps}`)), 0);
});

test("an answer that comes too late is none", async () => {
  const visitor = new Visitor({ port, ca, withinMs: 50 });
  assert.is(await within(20_000, "a watch as an answer", visitor.ask(`GET ${configmaps}?watch=1`)), 0);
  visitor.close();
});

test.run();
