import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import http2 from "node:http2";
import https from "node:https";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Apiserver } from "../../../demo/apiserver/apiserver.ts";
import { bodyBytes } from "../../../demo/apiserver/ask.ts";
import { newCluster } from "../../../demo/apiserver/cluster.ts";
import { Host } from "../../../demo/apiserver/host.ts";
import { wallClock } from "../../../src/base/clock.ts";
import { Failure } from "../../../src/base/failure.ts";
import { testPki } from "../../support/pki.ts";
import { within } from "../../support/within.ts";

const test = suite("demo/apiserver/host");
const { authority, serving } = await testPki();
const apiserver = new Apiserver({ store: newCluster(wallClock), clock: wallClock, name: "one" });
const host = new Host({ apiserver, ...serving });
const port = await host.start();
if (port instanceof Failure) throw new Error(port.message);
const session = http2.connect(`https://127.0.0.1:${port}`, { ca: authority.certificate });
test.after(() => {
  session.destroy();
  host.stop();
});

type Answer = { status: number; text: string };

async function ask(method: string, path: string, body?: Buffer): Promise<Answer> {
  const stream = session.request({ ":method": method, ":path": path }, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  const head = once(stream, "response");
  let text = "";
  stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const [fields] = await within(20_000, `a head for ${path}`, head);
  await within(20_000, `the end of ${path}`, once(stream, "end"));
  return { status: Number(fields[":status"]), text };
}

const configmaps = "/api/v1/namespaces/default/configmaps";

test("requests with and without bodies are answered whole", async () => {
  const data = { big: "x".repeat(1_000_000) };
  const body = Buffer.from(JSON.stringify({ metadata: { name: "a" }, data }));
  assert.is((await ask("POST", configmaps, body)).status, 201);
  const got = await ask("GET", `${configmaps}/a`);
  assert.equal(JSON.parse(got.text).data, data);
});

test("a body beyond the limit is refused, and the session lives on", async () => {
  const { status } = await ask("POST", configmaps, Buffer.alloc(bodyBytes + 1));
  assert.equal([status, (await ask("GET", "/livez")).text], [413, "ok"]);
});

test("a watch that its client resets is not served any longer", async () => {
  const stream = session.request({ ":path": `${configmaps}?watch=true` });
  await within(20_000, "its head", once(stream, "response"));
  assert.is(apiserver.watchCount, 1);
  stream.close(http2.constants.NGHTTP2_CANCEL);
  await within(20_000, "its close", once(stream, "close"));
  await ask("GET", "/livez");
  assert.is(apiserver.watchCount, 0);
});

function overHttp1(path: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const options = { port: Number(port), path, host: "127.0.0.1", ca: authority.certificate, agent: false };
    https.get(options, resolve).on("error", reject);
  });
}

test("HTTP/1.1 is served on the same port, and a watch whose client leaves is no longer served", async () => {
  const health = await within(20_000, "an answer", overHttp1("/readyz"));
  assert.equal([health.statusCode, health.httpVersion], [200, "1.1"]);
  health.resume();
  const watch = await within(20_000, "a head", overHttp1(`${configmaps}?watch=true`));
  assert.is(apiserver.watchCount, 1);
  watch.destroy();
  while (apiserver.watchCount > 0) await new Promise((passed) => setTimeout(passed, 5));
});

test.run();
