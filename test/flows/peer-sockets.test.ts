import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import http2 from "node:http2";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../src/base/clock.ts";
import { Failure } from "../../src/base/failure.ts";
import { type Entry, Journal } from "../../src/events/journal.ts";
import { type Running, startWatchkeeper } from "../../src/main.ts";
import { levelOf } from "../../src/ops/admin/events/entry-fields.ts";
import { parseConfig } from "../../src/ops/config/config.ts";
import { isProblems } from "../../src/ops/config/problem.ts";
import { answerMs } from "../../src/proxy/cluster/peer-sockets.ts";
import { mostPassedSockets } from "../../src/proxy/downstream/listen.ts";
import { connectChannel } from "../../src/upstream/net/handle-channel.ts";
import { freePort } from "../support/free-port.ts";
import { until } from "../support/h1.ts";
import { startProxy, type TestProxy } from "../support/proxy.ts";
import { within } from "../support/within.ts";

const test = suite("flows/peer-sockets");

type Another = { readonly running: Running; readonly entries: readonly Entry[] };

let directory: string;
let port: number;
let first: TestProxy;
const others: Another[] = [];

test.before.each(async () => {
  directory = mkdtempSync(join(tmpdir(), "watchkeeper-peers-"));
  // Another test may get the port between its choice and its use, so the start is tried up to five times.
  for (let tries = 1; ; tries += 1) {
    port = await freePort();
    const started = await start().catch((reason: unknown) => String(reason));
    if (typeof started !== "string") {
      first = started;
      return;
    }
    if (tries === 5 || !/in use/.test(started)) throw new Error(started);
  }
});

function start(): Promise<TestProxy> {
  return startProxy({
    backends: 2,
    listeners: `  - {name: through, address: "127.0.0.1:${port}", mode: Passthrough, reusePort: true}`,
    drain: `handoverDirectory: "${directory}"`,
  });
}

test.after.each(async () => {
  for (const { running } of others.splice(0)) await running.stop(AbortSignal.abort());
  await first.stop();
  rmSync(directory, { recursive: true, force: true });
});

/**
 * Starts a second proxy with the same configuration in this process. Their sockets behave as those of two processes.
 */
async function another(): Promise<Another> {
  const file = join(first.directory, "watchkeeper.yaml");
  const config = parseConfig(readFileSync(file, "utf8"), file);
  if (isProblems(config)) throw new Error(JSON.stringify(config));
  const entries: Entry[] = [];
  const journal = new Journal(wallClock);
  journal.subscribe((entry) => entries.push(entry));
  const running = await startWatchkeeper(config, { journal });
  if (running instanceof Failure) throw new Error(running.message);
  const made = { running, entries };
  others.push(made);
  return made;
}

type Joined = {
  readonly isClosed: () => boolean;
  readonly get: () => Promise<string>;
  readonly close: () => void;
};

/** A client with a TLS connection through the proxy. `raw` is its TCP connection, if that is already open. */
function through(raw = connect(port, "127.0.0.1")): Joined {
  const socket = tls.connect({
    socket: raw,
    ca: first.ca,
    servername: "localhost",
    ALPNProtocols: ["h2"],
  });
  socket.on("error", () => {});
  const session = http2.connect("https://localhost", { createConnection: () => socket });
  session.on("error", () => {});
  let isClosed = false;
  session.on("close", () => (isClosed = true));
  return {
    isClosed: () => isClosed,
    async get() {
      const chunks: Buffer[] = [];
      for await (const chunk of session.request({ ":path": "/api" })) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks).toString();
    },
    close: () => session.destroy(),
  };
}

const answer = /^[ab] GET \/api 0$/;
const never = new AbortController().signal;

/** Number of sockets that listen on the port, read from /proc/net/tcp. */
function listeningSockets(): number {
  const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const rows = readFileSync("/proc/net/tcp", "utf8").split("\n");
  return rows.filter((row) => row.includes(` ${local} `) && row.trim().split(/\s+/)[3] === "0A").length;
}

function sum(entries: readonly Entry[], kind: "peer_sockets.passed" | "peer_sockets.received"): number {
  const all = entries.flatMap((entry) => (entry.kind === kind ? [entry] : []));
  return all.reduce((count, { listeners }) => count + listeners, 0);
}

test("a listening socket is passed to the process that stays, and from there to the next one: there are never more", async () => {
  let old: Another = { running: first.running, entries: first.entries };
  let stays = await another();
  assert.is(listeningSockets(), 2);
  for (let upgrade = 0; upgrade < 4; upgrade += 1) {
    await within(20_000, "the stop", old.running.stop(never));
    assert.is(sum(old.entries, "peer_sockets.passed") >= 1, true);
    assert.is(listeningSockets(), 2);
    // Both sockets get connections, and the remaining process must answer all of them.
    const clients = Array.from({ length: 12 }, () => through());
    for (const client of clients) assert.match(await within(20_000, "an answer", client.get()), answer);
    for (const client of clients) client.close();
    const next = await another();
    await until("two listening sockets", () => listeningSockets() === 2);
    old = stays;
    stays = next;
  }
});

test("a client that has just connected and sent nothing yet is served, although its process has nothing else to do", async () => {
  const raw = connect(port, "127.0.0.1");
  await new Promise((resolve) => raw.once("connect", resolve));
  await another();
  const stopped = first.running.stop(never);
  await until("the drain", () => first.entries.some(({ kind }) => kind === "drain.started"));
  await new Promise((resolve) => setTimeout(resolve, 200));
  const client = through(raw);
  assert.match(await within(20_000, "an answer", client.get()), answer);
  client.close();
  await within(20_000, "the stop", stopped);
});

test("without another process, a stop is what it was, and leaves no socket in the directory", async () => {
  const client = through();
  assert.match(await within(20_000, "an answer", client.get()), answer);
  assert.is(readdirSync(directory).length, 1);
  await within(20_000, "the stop", first.running.stop(never));
  await until("the end of the connection", client.isClosed);
  assert.equal(readdirSync(directory), []);
});

test("a process that does not answer gets nothing, and delays the stop by a second at most", async () => {
  const hung = createServer();
  await new Promise<void>((resolve) => hung.listen(join(directory, "0000000000000000.sock"), resolve));
  const client = through();
  assert.match(await within(20_000, "an answer", client.get()), answer);
  const began = Date.now();
  await within(20_000, "the stop", first.running.stop(never));
  assert.ok(Date.now() - began < answerMs + 3_000, `${Date.now() - began} ms`);
  await until("the end of the connection", client.isClosed);
  assert.is(sum(first.entries, "peer_sockets.passed"), 0);
  hung.close();
});

test("the socket of a process that was killed is removed, and the next process is found", async () => {
  const killed = createServer();
  await new Promise<void>((resolve) => killed.listen(join(directory, "bound"), resolve));
  // Renamed before the close, because Node removes a socket file under the name that it was bound to.
  const dead = join(directory, "0000000000000000.sock");
  renameSync(join(directory, "bound"), dead);
  await new Promise((resolve) => killed.close(resolve));
  assert.is(existsSync(dead), true);
  await another();
  assert.is(existsSync(dead), false);
  await within(20_000, "the stop", first.running.stop(never));
  assert.is(sum(first.entries, "peer_sockets.passed"), 3);
});

test("a listener accepts from at most so many sockets of others, and from none that has another address", async () => {
  const path = join(directory, readdirSync(directory)[0] ?? "");
  const channel = await connectChannel(path, { received: () => {}, ended: () => {} });
  if (channel instanceof Failure) throw new Error(channel.message);
  const [same, other] = [createServer(), createServer()];
  await new Promise<void>((resolve) => same.listen({ host: "127.0.0.1", port, reusePort: true }, resolve));
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  for (const server of [other, ...Array.from({ length: mostPassedSockets + 2 }, () => same)])
    assert.ok(await channel.send({ kind: "listener", listener: "through" }, server));
  assert.ok(await channel.send({ kind: "listener", listener: "unknown" }, same));
  same.close();
  other.close();
  await new Promise((resolve) => setTimeout(resolve, 200));
  channel.close();
  await until("the end", () => sum(first.entries, "peer_sockets.received") > 0);
  assert.is(sum(first.entries, "peer_sockets.received"), mostPassedSockets);
  const clients = Array.from({ length: 6 }, () => through());
  for (const client of clients) assert.match(await within(20_000, "an answer", client.get()), answer);
  for (const client of clients) client.close();
});

test("a Passthrough connection that an older version passes is closed, so that its client reconnects", async () => {
  const path = join(directory, readdirSync(directory)[0] ?? "");
  const channel = await connectChannel(path, { received: () => {}, ended: () => {} });
  if (channel instanceof Failure) throw new Error(channel.message);
  const [client, down] = await tcpPair();
  const [backend, up] = await tcpPair();
  const names = { client: "127.0.0.1", listener: "through", serverName: "localhost", backend: "a" };
  assert.ok(await channel.send({ kind: "client", cluster: "default", ...names }, down));
  assert.ok(await channel.send({ kind: "backend" }, up));
  for (const one of [down, up]) one.destroy();
  const ends = [read(client), read(backend)];
  assert.equal(await within(5000, "both ends", Promise.all(ends)), ["closed", "closed"]);
  channel.close();
});

/** Returns both ends of a TCP connection. The second one is still paused. */
async function tcpPair(): Promise<[Socket, Socket]> {
  const { promise, resolve } = Promise.withResolvers<Socket>();
  const server = createServer({ pauseOnConnect: true }, resolve);
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const address = server.address();
  const near = connect(typeof address === "object" && address !== null ? address.port : 0, "127.0.0.1");
  near.on("error", () => {});
  const far = await promise;
  server.close();
  return [near, far];
}

/** Returns the first bytes as text, or "closed" if the connection closes before. */
function read(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    socket.once("data", (chunk: Buffer) => resolve(chunk.toString()));
    socket.once("close", () => resolve("closed"));
  });
}

test("a directory in which other users may write is not used, and a warning names it and the reason", async () => {
  chmodSync(directory, 0o777);
  const second = await another();
  const failures = second.entries.filter((entry) => entry.kind === "peer_sockets.failed");
  const reason = `${directory} must belong to user ${process.getuid?.()}, and no other user may write in it`;
  assert.equal(
    failures.map((entry) => [levelOf(entry), entry.reason]),
    [["Warning", reason]],
  );
  const client = through();
  assert.match(await within(20_000, "an answer", client.get()), answer);
  client.close();
});

test.run();
