/**
 * A43: a kube-apiserver sends a GOAWAY after each 401. It may affect only clients of the same kind as the one that got
 * the 401.
 */
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { until } from "../../support/h1.ts";
import { testPki } from "../../support/pki.ts";
import { startProxy, type TestProxy } from "../../support/proxy.ts";
import { within } from "../../support/within.ts";

const test = suite("attacks/whole/unauthenticated");

type Backend = { readonly port: number; readonly ca: string; goAways: number; stop(): void };

/**
 * Sends GOAWAY as k8s.io/apiserver does (UnauthenticatedHTTP2DOSMitigation): the session accepts no new stream, and
 * open streams continue.
 */
async function startBackend(): Promise<Backend> {
  const { authority, serving } = await testPki();
  const server = http2.createSecureServer({ cert: serving.certificate, key: serving.key, allowHTTP1: true });
  const sessions = new Set<http2.ServerHttp2Session>();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("error", () => {});
    session.on("close", () => sessions.delete(session));
  });
  // Health probes use HTTP/1.1.
  server.on("request", (request, response) => {
    if (request.httpVersionMajor === 1) response.end("ok");
  });
  server.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    const isKnown = headers.authorization === "Bearer good";
    stream.respond({ ":status": isKnown ? 200 : 401, "content-type": "application/json" });
    if (isKnown && String(headers[":path"]).includes("watch=1")) return tick(stream);
    stream.end("{}\n");
    if (isKnown || stream.session === undefined || stream.session.closed) return;
    own.goAways += 1;
    stream.session.close();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const own: Backend = {
    port: (server.address() as AddressInfo).port,
    ca: authority.certificate,
    goAways: 0,
    stop() {
      for (const session of sessions) session.destroy();
      server.close();
    },
  };
  return own;
}

function tick(stream: http2.ServerHttp2Stream): void {
  let version = 1;
  const timer = setInterval(() => {
    version += 1;
    const object = { kind: "Pod", metadata: { name: "x", resourceVersion: String(version) } };
    stream.write(`${JSON.stringify({ type: "MODIFIED", object })}\n`);
  }, 50);
  stream.on("close", () => clearInterval(timer));
}

function connected({ url, ca }: TestProxy): http2.ClientHttp2Session {
  const session = http2.connect(url, { ca });
  session.on("error", () => {});
  return session;
}

function statusOf(session: http2.ClientHttp2Session, authorization?: string): Promise<string> {
  const own = authorization === undefined ? {} : { authorization };
  const stream = session.request({ ":path": "/api/v1/pods", ...own });
  let status = "none";
  stream.on("response", (head) => {
    status = String(head[":status"]);
  });
  stream.on("error", () => {});
  stream.resume();
  return new Promise((resolve) =>
    stream.on("close", () => resolve(stream.rstCode === 0 ? status : `reset ${stream.rstCode}`)),
  );
}

test("A43: hundreds of 401s cost clients with good credentials neither a request, nor a watch, nor an upstream connection", async () => {
  const backend = await startBackend();
  const proxy = await startProxy({ backends: 0, targets: [{ name: "a", ...backend }] });
  const good = connected(proxy);
  assert.is(await within(5000, "an answer", statusOf(good, "Bearer good")), "200");
  let events = 0;
  const watch = good.request({ ":path": "/api/v1/pods?watch=1", authorization: "Bearer good" });
  watch.on("data", () => (events += 1));
  await until("an event", () => events > 0);
  const before = events;
  const statuses = new Map<string, number>();
  const count = (who: string, status: string): void =>
    void statuses.set(`${who} ${status}`, (statuses.get(`${who} ${status}`) ?? 0) + 1);
  for (let round = 0; round < 10; round += 1) {
    const bad = connected(proxy);
    const asked = Array.from({ length: 4 }, async (_, at) => {
      count("good", await statusOf(good, "Bearer good"));
      count("bad", await statusOf(bad, at % 2 === 0 ? undefined : `Bearer bad-${round}`));
    });
    await within(10_000, "a round", Promise.all(asked));
    bad.destroy();
  }
  const told = Array.from(statuses.keys());
  assert.equal(
    told.filter((one) => one.startsWith("good")),
    ["good 200"],
  );
  // A GOAWAY is not counted as a failed attempt, so the backend answers all requests in the end.
  assert.equal(
    told.filter((one) => one.startsWith("bad")),
    ["bad 401"],
  );
  assert.ok((statuses.get("bad 401") ?? 0) > 10, "the unknown are answered");
  assert.ok(backend.goAways > 10, `${backend.goAways} sessions were sent away`);
  await until("more events", () => events > before);
  assert.not(watch.closed, "the watch goes on");
  const lost = proxy.entries.filter(
    (entry) => entry.kind === "upstream_connection.closed" && entry.connection.startsWith("proven"),
  );
  assert.equal(lost, [], "no connection of the proven was sent away");
  good.destroy();
  await proxy.stop();
  backend.stop();
});

test.run();
