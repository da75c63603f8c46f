import type { IncomingHttpHeaders } from "node:http";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { textOf } from "../../../src/base/address.ts";
import { Failure } from "../../../src/base/failure.ts";
import { Forwarding } from "../../../src/fleet/replicas/forwarding.ts";
import { replicaLimits } from "../../../src/fleet/replicas/limits.ts";
import type { ReplicaRequest } from "../../../src/fleet/replicas/replica-client.ts";
import { jsonReply, type Reply, type Routes } from "../../../src/ops/admin/http/reply.ts";
import type { HttpResponse } from "../../../src/ops/http/http-client.ts";
import { addressOf, factsOf, listed, PlayedReplicas } from "../../support/replicas.ts";

const test = suite("fleet/replicas/forwarding");

type Sent = ReplicaRequest & { readonly to: string };

/** Routes with some of the paths of the real API. */
const api: Routes = (path) =>
  /^\/api\/v1\/(watches|stats|replicas|incidents\/[^/]+|)$/.test(path) ? () => jsonReply(200, {}) : undefined;

class Scene {
  readonly played = new PlayedReplicas(1, 2);
  readonly sent: Sent[] = [];
  response: HttpResponse | Failure = { status: 200, bytes: Buffer.from('{"kind":"Stats"}\n') };
  held: Promise<void> | undefined;
  isReadOnly = false;
  readonly refused: string[] = [];
  readonly forwarding = new Forwarding({
    replicas: this.played.replicas,
    api,
    refusal: (target) => {
      if (!this.isReadOnly) return undefined;
      this.refused.push(target);
      return jsonReply(403, {});
    },
    now: () => this.played.clock.now(),
    send: async ({ address }, request) => {
      this.sent.push({ ...request, to: textOf(address) });
      await this.held;
      return this.response;
    },
  });

  static async open(): Promise<Scene> {
    const scene = new Scene();
    scene.played.replicas.configure(listed(addressOf(1), addressOf(2), addressOf(3)));
    await scene.played.settle();
    return scene;
  }

  async get(target: string, headers: IncomingHttpHeaders = {}): Promise<Reply | undefined> {
    const [path = "", query = ""] = target.split("?");
    return this.forwarding.routes(path)?.(query, headers);
  }

  async post(path: string, body: Record<string, unknown>, headers: IncomingHttpHeaders = {}) {
    return this.forwarding.posts(path)?.({ by: "alice (CLI) at 10.9.9.9", body, headers });
  }
}

const messageOf = (reply: Reply | undefined): string => JSON.parse(String(reply?.text ?? "{}")).message ?? "";

test("a GET reaches the replica with its path, its query and the caller's token, and nothing else of it", async () => {
  const scene = await Scene.open();
  const reply = await scene.get("/api/v1/replicas/wk-2/watches?limit=1&q=a%20b&x", {
    authorization: "Bearer secret",
    cookie: "session=1",
    host: "here",
    "x-forwarded-for": "1.2.3.4",
    "x-watchkeeper-operator": "eve",
  });
  assert.equal([reply?.status, String(reply?.text)], [200, '{"kind":"Stats"}\n']);
  const [sent] = scene.sent;
  assert.equal([sent?.to, sent?.path], [addressOf(2), "/api/v1/watches?limit=1&q=a+b&x="]);
  assert.equal(sent?.headers, {
    accept: "application/json",
    authorization: "Bearer secret",
  });
  assert.is(sent?.body, undefined);
  await scene.get(`/api/v1/replicas/${encodeURIComponent(addressOf(2))}/incidents/42`);
  assert.is(scene.sent[1]?.path, "/api/v1/incidents/42");
  await scene.get("/api/v1/replicas/wk-2/");
  assert.is(scene.sent[2]?.path, "/api/v1/");
});

test("only names of the list are asked, and only paths of the API's own table", async () => {
  const scene = await Scene.open();
  for (const name of [
    "wk-4",
    "169.254.169.254",
    "10.0.0.9:7480",
    "evil.example",
    "127.0.0.1:7480",
    "__proto__",
  ]) {
    const reply = await scene.get(`/api/v1/replicas/${encodeURIComponent(name)}/stats`);
    assert.is(reply?.status, 404, name);
    assert.match(messageOf(reply), "there is wk-1, ");
  }
  for (const path of [
    "/api/v1/replicas/wk-2",
    "/api/v1/replicas//stats",
    "/api/v1/replicas/wk-2/../stats",
    "/api/v1/replicas/wk-2/incidents/..",
    "/api/v1/replicas/wk-2/incidents/%2e%2e",
    "/api/v1/replicas/wk-2/incidents/1/2",
    "/api/v1/replicas/wk-2/%zz",
    "/api/v1/replicas/wk-2/events",
    "/api/v1/replicas/wk-2/unknown",
    "/api/v1/replicas/wk-2/http://evil/",
    "/api/v1/replicas/wk-2//stats",
    "/api/v1/replicasx/wk-2/stats",
  ])
    assert.is(await scene.get(path), undefined, path);
  assert.equal(scene.sent, []);
  await scene.get("/api/v1/replicas/wk-2/incidents/a%2fb%3fc%0d%0a");
  assert.is(scene.sent[0]?.path, "/api/v1/incidents/a%2Fb%3Fc%0D%0A", "an ID stays one segment");
});

test("a forwarded request is not forwarded again", async () => {
  const scene = await Scene.open();
  assert.is(await scene.get("/api/v1/replicas/wk-2/replicas/wk-3/stats"), undefined);
  assert.is(await scene.get("/api/v1/replicas/wk-2/replicas%2fwk-3%2fstats"), undefined);
  assert.equal(scene.sent, []);
  assert.is((await scene.get("/api/v1/replicas/wk-2/replicas"))?.status, 200, "its list is no forwarding");
});

test("the process's own name redirects, so that the path asked for is authorized", async () => {
  const scene = await Scene.open();
  const reply = await scene.get("/api/v1/replicas/wk-1/watches?limit=1");
  assert.equal([reply?.status, reply?.location], [307, "/api/v1/watches?limit=1"]);
  assert.equal(scene.sent, []);
});

test("a silent or unknown replica gets no token, and the response says why", async () => {
  const scene = await Scene.open();
  const unknown = await scene.get(`/api/v1/replicas/${addressOf(3)}/stats`, { authorization: "Bearer x" });
  assert.is(unknown?.status, 502);
  assert.match(messageOf(unknown), /is unknown: it has not answered yet: ECONNREFUSED/);
  scene.played.answers.delete(addressOf(2));
  await scene.played.pass(20);
  const silent = await scene.get("/api/v1/replicas/wk-2/stats", { authorization: "Bearer x" });
  assert.is(silent?.status, 502);
  assert.match(messageOf(silent), /^Replica wk-2 is silent: it has not answered for 20 s: ECONNREFUSED/);
  assert.equal(scene.sent, []);
});

test("a refusal of the replica is the caller's; redirects and errors are not, and a lost replica is 502", async () => {
  const scene = await Scene.open();
  for (const status of [400, 401, 403, 404, 429, 503]) {
    scene.response = { status, bytes: Buffer.from("{}") };
    assert.is((await scene.get("/api/v1/replicas/wk-2/stats"))?.status, status);
  }
  for (const status of [101, 204, 301, 302, 307, 308, 418, 500, 508]) {
    scene.response = { status, bytes: Buffer.from("<script>") };
    const reply = await scene.get("/api/v1/replicas/wk-2/stats");
    assert.equal([reply?.status, reply?.location], [502, undefined], `${status}`);
    assert.match(messageOf(reply), `Replica wk-2 has answered ${status}`);
  }
  scene.response = new Failure("backend-lost", "backend", "no answer in 8000 ms");
  assert.match(
    messageOf(await scene.get("/api/v1/replicas/wk-2/stats")),
    "Replica wk-2 does not answer: no answer in 8000 ms",
  );
});

test("at most eight requests are forwarded to a replica at a time, and those to others do not wait", async () => {
  const scene = await Scene.open();
  scene.played.answers.set(addressOf(3), factsOf(3));
  await scene.played.pass(5);
  const { promise, resolve } = Promise.withResolvers<void>();
  scene.held = promise;
  const open = Array.from({ length: replicaLimits.forwardsAtOnce }, () =>
    scene.get("/api/v1/replicas/wk-2/stats"),
  );
  const refused = await scene.get("/api/v1/replicas/wk-2/stats");
  assert.is(refused?.status, 503);
  assert.match(messageOf(refused), "Too many requests are being forwarded to replica wk-2");
  const other = scene.get("/api/v1/replicas/wk-3/stats");
  resolve();
  for (const one of [...open, other]) assert.is((await one)?.status, 200);
  assert.is((await scene.get("/api/v1/replicas/wk-2/stats"))?.status, 200);
});

test("responses under way take at most 16 MiB together", async () => {
  const scene = await Scene.open();
  const { promise, resolve } = Promise.withResolvers<void>();
  scene.held = promise;
  const open = [scene.get("/api/v1/replicas/wk-2/stats"), scene.get("/api/v1/replicas/wk-2/stats")];
  const counts = scene.sent.map(({ count }) => count);
  const half = replicaLimits.forwardBytesAtOnce / 2;
  assert.equal([counts[0]?.(half), counts[1]?.(half)], [undefined, undefined]);
  const refusal = counts[1]?.(1);
  assert.is(refusal?.message, "Too many responses are being forwarded");
  if (refusal !== undefined) scene.response = refusal;
  resolve();
  for (const one of open) assert.is((await one)?.status, 503);
  const later = scene.get("/api/v1/replicas/wk-2/stats");
  assert.is(scene.sent[2]?.count?.(half), undefined, "their bytes are released");
  await later;
});

test("of the operations only limits are forwarded, with the operator's name and token", async () => {
  const scene = await Scene.open();
  const headers = { authorization: "Bearer secret", origin: "https://x", "x-watchkeeper-operator": "eve" };
  const body = { users: ["jane"], rate: "1/s", duration: "1h" };
  assert.is((await scene.post("/api/v1/replicas/wk-2/limits", body, headers))?.status, 200);
  const [sent] = scene.sent;
  assert.equal([sent?.to, sent?.path, sent?.body], [addressOf(2), "/api/v1/limits", JSON.stringify(body)]);
  assert.equal(sent?.headers, {
    accept: "application/json",
    authorization: "Bearer secret",
    "content-type": "application/json",
    "x-watchkeeper-operator": "alice (CLI) at 10.9.9.9",
  });
  assert.is((await scene.post("/api/v1/replicas/wk-2/limits/7/unlimit", {}))?.status, 200);
  assert.is(scene.sent[1]?.path, "/api/v1/limits/7/unlimit");
  assert.is((await scene.post("/api/v1/replicas/wk-1/limits", body))?.status, 307);
  for (const path of [
    "reload",
    "backends/cp-1/drain",
    "watches/x/move",
    "limits/7/8/unlimit",
    "limits/..",
    "",
  ])
    assert.is(await scene.post(`/api/v1/replicas/wk-2/${path}`, {}), undefined, path);
  scene.isReadOnly = true;
  assert.is((await scene.post("/api/v1/replicas/wk-2/limits", body))?.status, 403);
  assert.equal(scene.refused, ["replicas/wk-2/limits"]);
  assert.is(scene.sent.length, 2);
});

test.run();
