import { readFileSync } from "node:fs";
import http2 from "node:http2";
import { connect } from "node:net";
import { join } from "node:path";
import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../src/base/failure.ts";
import { parseConfig } from "../../src/ops/config/config.ts";
import { isProblems } from "../../src/ops/config/problem.ts";
import { until } from "../support/h1.ts";
import { startProxy, type TestProxy } from "../support/proxy.ts";
import { within } from "../support/within.ts";

const test = suite("flows/passthrough-through");

const listeners = `  - {name: through, address: "127.0.0.1:0", mode: Passthrough}
  - name: routed
    address: "127.0.0.1:0"
    mode: Passthrough
    routes: [{serverNames: [localhost], backends: [b]}, {backends: [a]}]`;

let proxy: TestProxy;
test.before.each(async () => {
  proxy = await startProxy({ backends: 2, listeners });
  await until("ready backends", () => {
    const ready = proxy.entries.filter((entry) => entry.kind === "backend.changed" && entry.to === "ready");
    return ready.length >= 2;
  });
});
test.after.each(async () => {
  await proxy.stop();
});

type Joined = { readonly session: http2.ClientHttp2Session; get(): Promise<string> };

/** A session through a passthrough listener: its TLS connection and certificate are the backend's. */
function through(listener: string, servername: string): Joined {
  const port = Number(proxy.running.addresses.get(listener)?.split(":").at(-1));
  const socket = tls.connect({
    socket: connect(port, "127.0.0.1"),
    ca: proxy.ca,
    servername,
    checkServerIdentity: () => undefined,
    ALPNProtocols: ["h2"],
  });
  socket.on("error", () => {});
  const session = http2.connect("https://localhost", { createConnection: () => socket });
  session.on("error", () => {});
  return {
    session,
    async get() {
      const chunks: Buffer[] = [];
      for await (const chunk of session.request({ ":path": "/api" })) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks).toString();
    },
  };
}

async function metrics(): Promise<string> {
  return (await fetch(`http://${proxy.running.adminAddress}/metrics`)).text();
}

test("a request through TLS of the backend's own is answered, and its connection counted", async () => {
  const joined = through("through", "localhost");
  assert.match(await within(20_000, "an answer", joined.get()), /^[ab] GET \/api 0$/);
  assert.match(await metrics(), /watchkeeper_passthrough_connections\{backend="[ab]"\} 1/);
  joined.session.destroy();
  await until("the end", () => proxy.entries.some(({ kind }) => kind === "passthrough.ended"));
  assert.match(await metrics(), /watchkeeper_passthrough_bytes_total\{direction="received"\} [1-9]/);
});

test("a server name has its own backends, and a client that sends none has the others", async () => {
  for (const [name, backend] of [
    ["localhost", "b"],
    ["", "a"],
    ["other.example", "a"],
  ] as const) {
    const joined = through("routed", name);
    assert.is(await within(20_000, "an answer", joined.get()), `${backend} GET /api 0`);
    joined.session.destroy();
  }
});

test("a listener that a reload takes away keeps the connections that it has", async () => {
  const joined = through("through", "localhost");
  await within(20_000, "an answer", joined.get());
  const file = join(proxy.directory, "watchkeeper.yaml");
  const text = readFileSync(file, "utf8").replace(/ {2}- \{name: through.*\n/, "");
  const config = parseConfig(text, file);
  if (isProblems(config)) throw new Error(JSON.stringify(config));
  assert.not.instance(await proxy.running.reload(config), Failure);
  assert.is(proxy.running.addresses.has("through"), false);
  assert.match(await within(20_000, "an answer", joined.get()), "GET /api");
  joined.session.destroy();
});

test("a stop waits for them, and cuts what is left in the end", async () => {
  const joined = through("through", "localhost");
  await within(20_000, "an answer", joined.get());
  const stopped = proxy.running.stop(new AbortController().signal);
  await until("the drain", () => proxy.entries.some(({ kind }) => kind === "drain.started"));
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.match(await within(20_000, "an answer while it drains", joined.get()), "GET /api");
  const gone = new Promise((resolve) => joined.session.once("close", resolve));
  await within(20_000, "the stop", stopped);
  await within(20_000, "the end of the session", gone);
  const ended = proxy.entries.find((entry) => entry.kind === "passthrough.ended");
  assert.is(ended?.kind === "passthrough.ended" && ended.reason, "draining");
  const drained = proxy.entries.find((entry) => entry.kind === "drain.ended");
  assert.is(drained?.kind === "drain.ended" && drained.cut, 1);
});

test.run();
