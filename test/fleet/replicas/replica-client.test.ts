import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { Failure } from "../../../src/base/failure.ts";
import { replicaLimits } from "../../../src/fleet/replicas/limits.ts";
import { replicaAnswer } from "../../../src/fleet/replicas/replica.ts";
import { askReplica, replicaClient } from "../../../src/fleet/replicas/replica-client.ts";
import { manualClock } from "../../support/clock.ts";
import { testPki } from "../../support/pki.ts";
import { factsOf, switching } from "../../support/replicas.ts";

const test = suite("fleet/replicas/replica-client");

const send = replicaClient(wallClock);
const servers: { close(): unknown; closeAllConnections?(): void }[] = [];
let directory: string;

test.before(() => {
  directory = mkdtempSync(join(tmpdir(), "watchkeeper-replicas-"));
});
test.after.each(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections?.();
  }
});
test.after(() => rmSync(directory, { recursive: true, force: true }));

async function serve(listener: RequestListener, make: (listener: RequestListener) => Server = createServer) {
  const server = make(listener);
  servers.push(server);
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return { host: "127.0.0.1", port: (server.address() as AddressInfo).port };
}

const small = { path: "/api/v1/stats", headers: {}, timeoutMs: 5000, mostBytes: 1000 };

function told(outcome: object): string {
  return outcome instanceof Failure ? outcome.message : JSON.stringify(outcome);
}

test("the path is sent as it is, on a connection of its own, and the response is returned", async () => {
  const asked: string[] = [];
  const address = await serve(({ method, url, headers }, response) => {
    asked.push(`${method} ${url} ${headers.connection} ${String(headers["x-a"])}`);
    response.writeHead(403).end("no");
  });
  const outcome = await send(
    { address, tls: undefined },
    { ...small, path: "/api/v1/../x?y", headers: { "x-a": "1" } },
  );
  assert.equal(outcome, { status: 403, bytes: Buffer.from("no") });
  assert.equal(asked, ["GET /api/v1/../x?y close 1"]);
});

test("a redirect is not followed, and a response that is too long or too slow is none", async () => {
  let asked = 0;
  const address = await serve(({ url }, response) => {
    asked += 1;
    if (url === "/redirect") response.writeHead(302, { location: "http://127.0.0.1:1/" }).end();
    if (url === "/long") response.end("x".repeat(100_000));
    if (url === "/endless") response.write("x");
  });
  const target = { address, tls: undefined };
  assert.equal(await send(target, { ...small, path: "/redirect" }), { status: 302, bytes: Buffer.from("") });
  assert.match(told(await send(target, { ...small, path: "/long" })), "an answer of more than 1000 bytes");
  for (const path of ["/endless", "/silent"])
    assert.match(told(await send(target, { ...small, path, timeoutMs: 100 })), "no answer in 100 ms");
  assert.is(asked, 4);
});

test("an answer that switches protocols is a failure at once", async () => {
  const address = await serve((_request, response) => response.socket?.write(switching));
  const beganAt = performance.now();
  assert.is(told(await send({ address, tls: undefined }, small)), "bad upgrade");
  assert.ok(performance.now() - beganAt < small.timeoutMs);
});

test("what is no HTTP, and a port that is closed, is a failure", async () => {
  const server = createTcpServer((socket) => socket.end("SSH-2.0-x\r\n"));
  servers.push(server);
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  assert.ok((await send({ address: { host: "127.0.0.1", port }, tls: undefined }, small)) instanceof Failure);
  const closed = await send({ address: { host: "127.0.0.1", port: 1 }, tls: undefined }, small);
  assert.match(told(closed), "ECONNREFUSED");
});

test("without TLS nothing is sent to another machine", async () => {
  for (const host of ["10.0.0.1", "192.0.2.1", "::ffff:10.0.0.1", "fd00::1"]) {
    const outcome = await send({ address: { host, port: 7480 }, tls: undefined }, small);
    assert.match(told(outcome), "is not on loopback, and admin.tls is not set");
  }
});

test("with TLS the certificate must be of the CA and have the name; without a name, the address", async () => {
  const { authority, serving } = await testPki();
  const listener: RequestListener = (_request, response) => response.end("secret");
  const pair = { cert: serving.certificate, key: serving.key };
  const address = await serve(listener, (listen) => createTlsServer(pair, listen));
  const ca = join(directory, "ca.crt");
  const other = join(directory, "other.crt");
  writeFileSync(ca, authority.certificate);
  writeFileSync(other, "none");
  const good = { status: 200, bytes: Buffer.from("secret") };
  for (const serverName of [undefined, "localhost", "kubernetes.default.svc"])
    assert.equal(await send({ address, tls: { caFile: ca, serverName } }, small), good, String(serverName));
  const wrong = await send({ address, tls: { caFile: ca, serverName: "wk.svc" } }, small);
  assert.match(told(wrong), "does not match certificate's altnames");
  assert.ok(
    (await send({ address, tls: { caFile: other, serverName: "localhost" } }, small)) instanceof Failure,
  );
  const none = await send(
    { address, tls: { caFile: join(directory, "none"), serverName: "localhost" } },
    small,
  );
  assert.match(told(none), "none");
});

test("another CA is used after a round at most, and a file that cannot be read then is a failure", async () => {
  const { authority, serving } = await testPki();
  const pair = { cert: serving.certificate, key: serving.key };
  const address = await serve(
    (_request, response) => response.end("secret"),
    (listen) => createTlsServer(pair, listen),
  );
  const caFile = join(directory, "changing.crt");
  writeFileSync(caFile, authority.certificate);
  const clock = manualClock();
  const sendNow = replicaClient(clock);
  const ask = async (): Promise<boolean> =>
    !((await sendNow({ address, tls: { caFile, serverName: "localhost" } }, small)) instanceof Failure);
  assert.ok(await ask());
  writeFileSync(caFile, "none");
  clock.advance(replicaLimits.askEveryMs - 1);
  assert.ok(await ask(), "the file is not read for each request");
  clock.advance(1);
  assert.not.ok(await ask());
  writeFileSync(caFile, authority.certificate);
  clock.advance(replicaLimits.askEveryMs);
  assert.ok(await ask());
  rmSync(caFile);
  clock.advance(replicaLimits.askEveryMs);
  assert.not.ok(await ask());
});

test("a replica is asked about itself, and another server is not taken for one", async () => {
  const facts = factsOf(2);
  const address = await serve(({ url }, response) => {
    assert.is(url, "/replicaz");
    response.end(JSON.stringify(replicaAnswer(facts)));
  });
  assert.equal(await askReplica(send, { address, tls: undefined }), facts);
  const other = await serve((_request, response) => response.end("<html>"));
  assert.is(
    told(await askReplica(send, { address: other, tls: undefined })),
    "Not a watchkeeper replica: status 200",
  );
  const long = await serve((_request, response) => response.end(" ".repeat(9000)));
  assert.match(told(await askReplica(send, { address: long, tls: undefined })), "more than 8192 bytes");
});

test.run();
