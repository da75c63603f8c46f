import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { limitOf } from "../../../src/ops/config/limit.ts";
import { Limit } from "../../../src/proxy/limits/limit.ts";
import { times } from "../../support/attack.ts";
import type { RawPeer } from "../../support/raw.ts";
import { exec, type ScriptedSplice, spdy, startSplice, switched } from "../../support/splice.ts";

const test = suite("proxy/tunnel/upgrade-handler");

let upgrade: ScriptedSplice;
test.before.each(async () => {
  upgrade = await startSplice();
});
test.after.each(() => upgrade.close());

test("SPDY by POST goes up with every field as it came, repeated ones apart", async () => {
  const client = await upgrade.connect();
  client.send(
    exec(
      "POST",
      "User-Agent: kubectl",
      "Content-Length: 0",
      "Connection: Upgrade",
      "Upgrade: SPDY/3.1",
      "X-Stream-Protocol-Version: v4.channel.k8s.io",
      "Impersonate-Group: a",
      "X-Stream-Protocol-Version: v3.channel.k8s.io",
      "Impersonate-Group: b,c",
      "Authorization: Bearer t",
      "X-Remote-User: someone",
    ),
  );
  const backend = await upgrade.backend();
  const head = await backend.expect("\r\n\r\n");
  assert.equal(head.split("\r\n"), [
    "POST /api/v1/namespaces/n/pods/p/exec?command=sh HTTP/1.1",
    "host: api",
    "user-agent: kubectl",
    "content-length: 0",
    "x-stream-protocol-version: v4.channel.k8s.io",
    "impersonate-group: a",
    "x-stream-protocol-version: v3.channel.k8s.io",
    "impersonate-group: b,c",
    "authorization: Bearer t",
    "x-remote-user: someone",
    "x-forwarded-for: 192.0.2.1",
    "connection: Upgrade",
    "upgrade: SPDY/3.1",
    "",
    "",
  ]);
});

for (const [method, protocol] of [
  ["GET", "websocket"],
  ["GET", "WebSocket"],
  ["GET", "SPDY/3.1"],
  ["POST", "SPDY/3.1"],
] as const) {
  test(`${method} with Upgrade: ${protocol} becomes a tunnel`, async () => {
    const client = await upgrade.connect();
    client.send(exec(method, "connection: keep-alive, UPGRADE", `upgrade: ${protocol}`));
    const backend = await upgrade.backend();
    await backend.expect(`upgrade: ${protocol}\r\n\r\n`);
    const answer = `HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUPGRADE: ${protocol}\r\nX-Odd: 1\r\nX-Odd: 2\r\n\r\n`;
    backend.send(answer);
    assert.is(await client.expect("\r\n\r\n"), answer);
    client.send("up\0\xff");
    await backend.expect("up\0\xff");
    backend.send("down\r\n\0");
    await client.expect("down\r\n\0");
  });
}

test("an Upgrade above a limit gets 429 with Retry-After, and no backend is dialled", async () => {
  upgrade.limited = new Failure("limited", "proxy", "Too many requests, please try again later");
  const client = await upgrade.connect();
  client.send(spdy);
  const answer = await client.expect('"code":429');
  assert.match(answer, /^HTTP\/1\.1 429 [^]*retry-after: 1\r\n[^]*"TooManyRequests"/);
  assert.is(upgrade.backendCount(), 0);
  assert.equal(
    upgrade.entries.filter(({ kind }) => kind === "request.failed"),
    [],
  );
});

test("a limit counts an Upgrade until its tunnel is open, or its dial has failed", async () => {
  const limit = new Limit(limitOf({ name: "one", users: ["*"], maxInFlight: 1 }), upgrade.clock);
  for (const failure of [undefined, new Failure("no-backend", "proxy", "none")]) {
    upgrade.failure = failure;
    limit.begin();
    upgrade.limited = [limit];
    const client = await upgrade.connect();
    client.send(spdy);
    await (failure === undefined ? upgrade.backend() : client.ended());
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    assert.is(limit.inFlight, 0);
  }
});

async function opened(): Promise<{ readonly client: RawPeer; readonly backend: RawPeer }> {
  const client = await upgrade.connect();
  client.send(spdy);
  const backend = await upgrade.backend();
  await backend.expect("\r\n\r\n");
  backend.send(switched);
  await client.expect(switched);
  return { client, backend };
}

test("a backend that is proven dead ends its tunnels in order, with what it had sent", async () => {
  const { client, backend } = await opened();
  backend.send("said");
  await client.expect("said");
  upgrade.die();
  assert.is(await client.ended(), "");
  await backend.ended();
  assert.ok(
    upgrade.entries.some((entry) => entry.kind === "tunnel.ended" && entry.reason === "backend_dead"),
  );
});

test("a tunnel on whose own sockets nothing gets through ends as cleanly, though its backend is well", async () => {
  const { client, backend } = await opened();
  backend.send("said");
  await client.expect("said");
  upgrade.stick();
  assert.is(await client.ended(), "");
  await backend.ended();
  assert.ok(
    upgrade.entries.some((entry) => entry.kind === "tunnel.ended" && entry.reason === "connection_stuck"),
  );
});

test("where memory is short a tunnel ends in order, and one that waits for its answer is broken off (A26)", async () => {
  const { client, backend } = await opened();
  const waiting = await upgrade.connect();
  waiting.send(spdy);
  const silent = await upgrade.backend();
  await silent.expect("\r\n\r\n");
  const live = upgrade.splices.live;
  assert.equal(
    live.map(({ context }) => context),
    times(2, () => ({ kind: "long-running", at: upgrade.clock.now(), auditId: "id" })),
  );
  for (const one of live) one.cut();
  assert.is(await client.ended(), "");
  await backend.ended();
  assert.is(await waiting.closed(), "");
  await silent.ended();
  assert.equal(upgrade.splices.live, []);
  assert.ok(
    upgrade.entries.some((entry) => entry.kind === "tunnel.ended" && entry.reason === "memory_short"),
  );
});

test("a drain's last act cuts the tunnels that are left", async () => {
  const { client, backend } = await opened();
  assert.is(upgrade.splices.openCount, 1);
  upgrade.splices.cut();
  await client.ended();
  await backend.ended();
  assert.is(upgrade.splices.openCount, 0);
});

test("without a backend, or if it is lost before it answers, the client gets an error response", async () => {
  const early = await upgrade.connect();
  upgrade.failure = new Failure("backend-refused", "backend", "No server listens");
  early.send(spdy);
  assert.match(
    await early.ended(),
    /^HTTP\/1.1 503 .*connection: close\r\n\r\n.*watchkeeper: No server listens/s,
  );
  upgrade.failure = undefined;
  for (const lose of ["end", "resetAndDestroy"] as const) {
    const client = await upgrade.connect();
    client.send(spdy);
    const backend = await upgrade.backend();
    await backend.expect("\r\n\r\n");
    backend.socket[lose]();
    assert.match(await client.ended(), /^HTTP\/1.1 504 /);
  }
  const client = await upgrade.connect();
  client.send(spdy);
  await (await upgrade.backend()).expect("\r\n\r\n");
  upgrade.die();
  assert.match(await client.ended(), /^HTTP\/1.1 504 /);
});

test("the journal names a refused Upgrade by its audit id, as it names every other exchange", async () => {
  const client = await upgrade.connect();
  upgrade.failure = new Failure("no-backend", "proxy", "No backend is ready");
  client.send(spdy);
  await client.ended();
  assert.equal(
    upgrade.entries.filter(({ kind }) => kind === "request.failed"),
    [
      {
        kind: "request.failed",
        code: "no-backend",
        origin: "proxy",
        message: "No backend is ready",
        client: "192.0.2.1",
        userAgent: "",
        verb: "CONNECT",
        path: "/api/v1/namespaces/n/pods/p/exec",
        auditId: "id",
      },
    ],
  );
});

test("a client that leaves before the answer takes the backend's socket with it", async () => {
  for (const leave of ["end", "destroy"] as const) {
    const client = await upgrade.connect();
    client.send(spdy);
    const backend = await upgrade.backend();
    await backend.expect("\r\n\r\n");
    client.socket[leave]();
    await backend.ended();
  }
});

test.run();
