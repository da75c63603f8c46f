import net from "node:net";
import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Failure } from "../../../src/base/failure.ts";
import { limits } from "../../../src/base/limits.ts";
import { Journal } from "../../../src/events/journal.ts";
import { wireOf } from "../../../src/upstream/net/socket.ts";
import { TlsWriter } from "../../../src/upstream/net/tls-writer.ts";
import { manualClock } from "../../support/clock.ts";
import { until } from "../../support/h1.ts";
import { testPki } from "../../support/pki.ts";
import { openPair } from "../../support/sockets.ts";
import { within } from "../../support/within.ts";

const test = suite("upstream/net/tls-writer");

/** Returns both ends of a TLS connection after the handshake: `near` is the proxy's end, `far` the client's. */
async function openTlsPair(): Promise<{ near: tls.TLSSocket; far: tls.TLSSocket; close(): void }> {
  const { serving, authority } = await testPki();
  const secureContext = tls.createSecureContext({ cert: serving.certificate, key: serving.key });
  const accepted = Promise.withResolvers<tls.TLSSocket>();
  const server = net.createServer((socket) => {
    const secure = new tls.TLSSocket(socket, { isServer: true, secureContext });
    secure.on("error", () => {});
    secure.once("close", () => socket.destroy());
    secure.once("secure", () => accepted.resolve(secure));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const far = tls.connect({ host: "127.0.0.1", port, servername: "localhost", ca: authority.certificate });
  far.on("error", () => {});
  const near = await within(20_000, "the handshake", accepted.promise);
  const close = (): void => {
    near.destroy();
    far.destroy();
    server.close();
  };
  return { near, far, close };
}

function heardBy(socket: net.Socket): { readonly text: string } {
  const heard = { text: "" };
  socket.on("data", (chunk: Buffer) => {
    heard.text += chunk.toString("latin1");
  });
  return heard;
}

const parts = { journal: new Journal(manualClock()), origin: "client" } as const;
const ignored = { receive() {}, drained() {}, closed() {} };

test("buffers arrive in order, whatever their length and the turn in which they are written", async () => {
  const { near, far, close } = await openTlsPair();
  const heard = heardBy(far);
  const wire = wireOf(near, ignored, parts);
  near.write = () => {
    throw new Error("Node's stream is not used");
  };
  let expected = "";
  for (let round = 0; round < 40; round += 1) {
    const lengths = [round, 20_000 * (round % 3), 70_000 * (round % 2)].filter((length) => length > 0);
    const buffers = lengths.map((length, at) => Buffer.alloc(length, 97 + ((round + at) % 26)));
    expected += Buffer.concat(buffers).toString("latin1");
    if (buffers.length > 0) wire.write(buffers, () => {});
    if (round % 5 === 0) await new Promise(setImmediate);
  }
  await until("all bytes", () => heard.text.length >= expected.length);
  assert.ok(heard.text === expected);
  close();
});

test("a buffer may be reused as soon as `written` is called", async () => {
  const { near, far, close } = await openTlsPair();
  const heard = heardBy(far);
  const wire = wireOf(near, ignored, parts);
  far.pause();
  let expected = "";
  for (let count = 0; count < 300; count += 1) {
    const length = count % 7 === 0 ? 40_000 : 900;
    const lent = Buffer.alloc(length, 97 + (count % 26));
    expected += lent.toString("latin1");
    wire.write([lent], () => lent.fill("!"));
    if (count % 50 === 0) await new Promise(setImmediate);
  }
  far.resume();
  await until("all bytes", () => heard.text.length >= expected.length);
  assert.ok(heard.text === expected);
  close();
});

test("short buffers are taken at once, also while the peer does not read (A16)", async () => {
  const { near, far, close } = await openTlsPair();
  far.pause();
  const wire = wireOf(near, ignored, parts);
  let taken = 0;
  const large = Buffer.alloc(60_000, "a");
  while (wire.write([large])) await new Promise(setImmediate);
  for (let count = 0; count < 10; count += 1) wire.write([Buffer.alloc(100, "b")], () => (taken += 1));
  assert.is(taken, 10);
  assert.ok(Number(wire.waitingBytes) > limits.socketBacklogBytes);
  close();
});

test("a peer that does not read counts as backlog, and as drained once it reads", async () => {
  const { near, far, close } = await openTlsPair();
  const drained = Promise.withResolvers<undefined>();
  const wire = wireOf(near, { ...ignored, drained: () => drained.resolve(undefined) }, parts);
  far.pause();
  while (wire.write([Buffer.alloc(60_000)])) await new Promise(setImmediate);
  far.resume();
  await within(20_000, "drained", drained.promise);
  assert.is(wire.waitingBytes, 0);
  close();
});

test("a write that is taken before a full socket has drained does not cancel `drained`", async () => {
  const { near, far, close } = await openTlsPair();
  const drained = Promise.withResolvers<undefined>();
  const wire = wireOf(near, { ...ignored, drained: () => drained.resolve(undefined) }, parts);
  far.pause();
  while (wire.write([Buffer.alloc(60_000)])) await new Promise(setImmediate);
  // Permits one more write, as if the peer had read a part of the backlog.
  const { socketBacklogBytes } = limits;
  Reflect.set(limits, "socketBacklogBytes", Number.MAX_SAFE_INTEGER);
  const isTaken = wire.write([Buffer.alloc(10)]);
  Reflect.set(limits, "socketBacklogBytes", socketBacklogBytes);
  far.resume();
  await within(5_000, "drained", drained.promise).finally(close);
  assert.ok(isTaken);
});

test("the end comes after all bytes, also if the peer has ended its side before", async () => {
  for (const isFarFirst of [false, true]) {
    const { near, far, close } = await openTlsPair();
    far.allowHalfOpen = true;
    far.pause();
    const wire = wireOf(near, ignored, parts);
    let bytes = 0;
    for (let isMore = true; isMore; bytes += 60_000) isMore = wire.write([Buffer.alloc(60_000)]);
    if (isFarFirst) {
      far.end();
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    wire.end();
    assert.ok(wire.write([Buffer.from("late")]), "nothing is written after the end");
    const heard = heardBy(far);
    const ended = new Promise((resolve) => far.once("end", resolve));
    far.resume();
    await within(20_000, "the end", ended);
    assert.is(heard.text.length, bytes);
    close();
  }
});

test("a connection that breaks while bytes wait is a failure of the peer", async () => {
  const { near, far, close } = await openTlsPair();
  const closed = Promise.withResolvers<Failure | undefined>();
  const wire = wireOf(near, { ...ignored, closed: closed.resolve }, parts);
  far.pause();
  near.pause();
  while (wire.write([Buffer.alloc(60_000)])) await new Promise(setImmediate);
  // The kernel sends a reset, because received bytes are unread when the socket closes.
  far.destroy();
  const failure = await within(20_000, "closed", closed.promise);
  assert.equal([failure?.code, failure?.origin], ["client-lost", "client"]);
  assert.is(wire.waitingBytes, 0);
  assert.ok(wire.write([Buffer.from("x")]), "nothing is written to a socket that is destroyed");
  close();
});

test("bytes that wait are dropped with their socket", async () => {
  const { near, far, close } = await openTlsPair();
  far.pause();
  const wire = wireOf(near, ignored, parts);
  while (wire.write([Buffer.alloc(60_000)])) await new Promise(setImmediate);
  wire.destroy();
  assert.ok(wire.write([Buffer.from("x")]));
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(near.destroyed);
  close();
});

test("Node's stream is used without TLS, before the end of the handshake, and while bytes wait in it", async () => {
  const owner = { progressed() {} };
  const plain = await openPair();
  assert.is(TlsWriter.of(plain.near, owner), undefined);
  plain.close();
  const early = tls.connect({ host: "127.0.0.1", port: 1 });
  early.on("error", () => {});
  assert.is(TlsWriter.of(early, owner), undefined);
  early.destroy();
  const { near, close } = await openTlsPair();
  near.write("x");
  assert.is(TlsWriter.of(near, owner), undefined);
  await until("the stream to be empty", () => near.writableLength === 0);
  assert.ok(TlsWriter.of(near, owner));
  near.destroy();
  assert.is(TlsWriter.of(near, owner), undefined);
  close();
});

test.run();
