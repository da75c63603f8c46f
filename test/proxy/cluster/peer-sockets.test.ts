/**
 * Tests what happens when other sockets in the processes' socket directory hang, are busy, or do not belong to
 * watchkeeper.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { type Entry, Journal } from "../../../src/events/journal.ts";
import { answerMs, PeerSockets, type PeerSocketsParts } from "../../../src/proxy/cluster/peer-sockets.ts";
import { Descriptors } from "../../../src/upstream/net/descriptors.ts";
import { within } from "../../support/within.ts";

const test = suite("proxy/cluster/peer-sockets");

let directory: string;
const ends: (() => void)[] = [];

test.before.each(() => {
  directory = mkdtempSync(join(tmpdir(), "watchkeeper-peers-"));
});

test.after.each(() => {
  for (const end of ends.splice(0)) end();
  rmSync(directory, { recursive: true, force: true });
});

/** Starts the peer sockets of a process. `byName`: its listeners. */
function peerSockets(byName: ReadonlyMap<string, object> = new Map()) {
  const journal = new Journal(wallClock);
  const entries: Entry[] = [];
  journal.subscribe((entry) => entries.push(entry));
  const parts = { clock: wallClock, journal, listeners: { byName } };
  const sockets = new PeerSockets(parts as unknown as PeerSocketsParts);
  ends.push(() => sockets.close());
  return { sockets, entries };
}

/** Listens at this socket name as another program than watchkeeper would. */
async function played(name: string, serve: (socket: Socket) => void): Promise<void> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    ends.push(() => socket.destroy());
    serve(socket);
  });
  await new Promise<void>((resolve) => server.listen(join(directory, name), resolve));
  ends.push(() => server.close());
}

test("a process that stops reading in the middle does not hold up the drain", async () => {
  await played("00000000000000aa.sock", (socket) => {
    socket.once("data", () => {
      socket.pause();
      socket.write('{"kind":"accepted"}\n');
    });
  });
  // More messages than the kernel buffers, which is some hundred.
  const server = await listening();
  const { sockets, entries } = peerSockets(holding(Array.from({ length: 2000 }, () => server)));
  sockets.serve(directory);
  const began = Date.now();
  await within(10_000, "the end", sockets.passListeners(false));
  const passed = entries.reduce(
    (sum, one) => sum + (one.kind === "peer_sockets.passed" ? one.listeners : 0),
    0,
  );
  assert.ok(passed < 2000 && Date.now() - began < answerMs + 3000, `${passed} in ${Date.now() - began} ms`);
});

/** Returns the listener of a process that has opened these sockets. */
function holding(own: readonly Server[]): ReadonlyMap<string, object> {
  return new Map([["kube", { servers: { own, passed: [] } }]]);
}

test("each process that starts gets one of several sockets, and the rest is accepted from until another one starts", async () => {
  const passed: Server[] = await Promise.all([listening(), listening()]);
  const portsOf = (servers: readonly Server[]): number[] =>
    servers.map((server) => (server.address() as AddressInfo).port);
  const ports = portsOf(passed);
  const release = (servers: readonly Server[]): void => {
    for (const server of servers) passed.splice(passed.indexOf(server), 1);
  };
  const kube = { servers: { own: [], passed }, release };
  peerSockets(new Map([["kube", kube]])).sockets.serve(directory);
  for (const port of ports) {
    const taken = new Descriptors();
    // Each process starts only after the one before it.
    // oxlint-disable-next-line no-await-in-loop
    const tellPeer = await peerSockets().sockets.takeListeners(directory, taken);
    const server = createServer();
    ends.push(() => server.close());
    server.listen(taken.take("kube"));
    assert.equal([portsOf([server]), portsOf(passed)[0]], [[port], port]);
    const before = passed.length;
    tellPeer();
    // oxlint-disable-next-line no-await-in-loop
    await within(
      10_000,
      "the release",
      until(() => passed.length < before),
    );
  }
  assert.equal(passed, []);
});

async function listening(): Promise<Server> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ends.push(() => server.close());
  return server;
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5));
}

test("a process that hangs does not hide one that answers", async () => {
  await played("0000000000000000.sock", () => {});
  peerSockets().sockets.serve(directory);
  const { sockets, entries } = peerSockets(holding([await listening()]));
  const began = Date.now();
  sockets.serve(directory);
  sockets.stop();
  await sockets.passListeners(false);
  assert.ok(Date.now() - began < answerMs, `${Date.now() - began} ms`);
  assert.equal(
    entries.map(({ kind }) => kind),
    ["peer_sockets.passed"],
  );
});

test("sockets of other programs are neither asked nor removed, and nothing in the directory makes a start or a stop fail", async () => {
  let asked = 0;
  await played("docker.sock", () => (asked += 1));
  mkdirSync(join(directory, "00000000000000bb.sock"));
  const { sockets } = peerSockets();
  await sockets.takeListeners(directory, new Descriptors());
  sockets.serve(directory);
  await sockets.passListeners(false);
  sockets.stop();
  assert.equal([asked, readdirSync(directory).length], [0, 2]);
});

test("the socket of a process that is too busy to accept stays", async () => {
  const path = join(directory, "00000000000000cc.sock");
  const listen = `require("net").createServer().listen({path:${JSON.stringify(path)},backlog:1},()=>{require("fs").writeSync(1,"x");for(;;);})`;
  const child = spawn(process.execPath, ["-e", listen], { stdio: ["ignore", "pipe", "ignore"] });
  ends.push(() => child.kill("SIGKILL"));
  await within(10_000, "the child", new Promise((resolve) => child.stdout.once("data", resolve)));
  for (let at = 0; at < 4; at += 1) {
    const socket = connect(path);
    socket.on("error", () => {});
    ends.push(() => socket.destroy());
  }
  await new Promise((resolve) => setTimeout(resolve, 100));
  const { sockets } = peerSockets();
  await sockets.takeListeners(directory, new Descriptors());
  assert.is(existsSync(path), true);
});

test("a directory that failed is tried again with the next reload; a process that stops serves no more", () => {
  const { sockets, entries } = peerSockets();
  const late = join(directory, "late");
  sockets.serve(late);
  assert.equal(
    entries.map(({ kind }) => kind),
    ["peer_sockets.failed"],
  );
  mkdirSync(late, { mode: 0o700 });
  sockets.serve(late);
  assert.is(readdirSync(late).length, 1);
  sockets.stop();
  sockets.serve(directory);
  assert.equal([...readdirSync(late), ...readdirSync(directory)], ["late"]);
});

test("a path that is too long for other processes is a failure", () => {
  const { sockets, entries } = peerSockets();
  const deep = join(directory, "x".repeat(88 - directory.length));
  mkdirSync(deep, { mode: 0o700 });
  sockets.serve(deep);
  assert.equal([entries.map(({ kind }) => kind), readdirSync(deep)], [["peer_sockets.failed"], []]);
});

test.run();
