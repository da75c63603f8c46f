import type net from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Failure } from "../../../src/base/failure.ts";
import { limits } from "../../../src/base/limits.ts";
import { type Entry, Journal } from "../../../src/events/journal.ts";
import { endLookMs, setKeepalive, unreadBytes, wireOf } from "../../../src/upstream/net/socket.ts";
import { manualClock } from "../../support/clock.ts";
import { openPair } from "../../support/sockets.ts";
import { within } from "../../support/within.ts";

const test = suite("upstream/net/socket");

const noKeepalive = { idleMs: 5000, intervalMs: 1000, count: 3 };

function journal(): { journal: Journal; entries: Entry[] } {
  const entries: Entry[] = [];
  const own = new Journal(manualClock());
  own.subscribe((entry) => entries.push(entry));
  return { journal: own, entries };
}

test("buffers arrive in order as one stream, and the end comes after them", async () => {
  const { near, far, close } = await openPair();
  const wire = wireOf(near, { receive() {}, drained() {}, closed() {} }, { ...journal(), origin: "client" });
  wire.write([Buffer.from("a"), Buffer.from("b")]);
  wire.write([Buffer.from("c")]);
  wire.end();
  const chunks: Buffer[] = [];
  far.on("data", (chunk: Buffer) => chunks.push(chunk));
  await within(20_000, "the end", new Promise((resolve) => far.on("end", resolve)));
  assert.is(Buffer.concat(chunks).toString(), "abc");
  close();
});

test("a peer that does not read counts as backlog, and as drained once it reads", async () => {
  const { near, far, close } = await openPair();
  const drained = Promise.withResolvers<undefined>();
  const owner = { receive() {}, drained: () => drained.resolve(undefined), closed() {} };
  const wire = wireOf(near, owner, { ...journal(), origin: "client" });
  far.pause();
  let written = 0;
  while (wire.write([Buffer.alloc(100_000)])) written += 1;
  assert.ok(written * 100_000 > limits.socketBacklogBytes / 2, String(written));
  far.resume();
  await within(20_000, "drained", drained.promise);
  close();
});

test("a client that reads no answer is not read until it does", async () => {
  const { near, far, close } = await openPair();
  const heard = Promise.withResolvers<string>();
  const owner = { receive: (chunk: Buffer) => heard.resolve(chunk.toString()), drained() {}, closed() {} };
  const wire = wireOf(near, owner, { ...journal(), origin: "client" });
  // The socket starts reading in the next turn of the event loop.
  await new Promise(setImmediate);
  far.pause();
  // Writes far more than the kernel buffers for the other side.
  for (let count = 0; count < 200; count += 1) wire.write([Buffer.alloc(100_000)]);
  assert.ok(near.writableLength > unreadBytes);
  far.write("x");
  const soon = new Promise<string>((resolve) => {
    setTimeout(resolve, 50, "nothing yet");
  });
  assert.is(await Promise.race([heard.promise, soon]), "nothing yet");
  far.resume();
  assert.is(await within(20_000, "what was said meanwhile", heard.promise), "x");
  close();
});

test("a peer's FIN is reported at once, also while it does not read what it was sent (D17)", async () => {
  for (const origin of ["client", "backend"] as const) {
    const { near, far, close } = await openPair();
    const closed = Promise.withResolvers<undefined>();
    const owner = { receive() {}, drained() {}, closed: () => closed.resolve(undefined) };
    const wire = wireOf(near, owner, { ...journal(), origin });
    far.allowHalfOpen = true;
    await new Promise(setImmediate);
    far.pause();
    while (near.writableLength < unreadBytes / 2) wire.write([Buffer.alloc(100_000)]);
    far.end();
    await within(endLookMs / 2, "the FIN", closed.promise);
    close();
  }
});

test("an end is the end: a peer that stays all the same is let go of", async () => {
  const { near, far, close } = await openPair();
  const closed = Promise.withResolvers<undefined>();
  const owner = { receive() {}, drained() {}, closed: () => closed.resolve(undefined) };
  far.allowHalfOpen = true;
  wireOf(near, owner, { ...journal(), origin: "client" }).end();
  await within(20_000, "the socket's end", closed.promise);
  close();
});

test("what a session throws ends its own socket and is journaled (D10)", async () => {
  const { near, far, close } = await openPair();
  const { journal: own, entries } = journal();
  const closed = Promise.withResolvers<Failure | undefined>();
  const owner = {
    receive() {
      throw new Error("a bug");
    },
    drained() {},
    closed: (failure: Failure | undefined) => closed.resolve(failure),
  };
  wireOf(near, owner, { journal: own, origin: "client" });
  far.write("x");
  assert.is((await within(20_000, "closed", closed.promise))?.origin, "proxy");
  assert.equal(entries, [{ kind: "internal.error", scope: "session", message: "a bug" }]);
  close();
});

test("a reset is a failure of the peer on this side", async () => {
  const { near, far, close } = await openPair();
  const closed = Promise.withResolvers<Failure | undefined>();
  wireOf(
    near,
    { receive() {}, drained() {}, closed: (failure) => closed.resolve(failure) },
    { ...journal(), origin: "backend" },
  );
  far.resetAndDestroy();
  const failure = await within(20_000, "closed", closed.promise);
  assert.equal([failure?.code, failure?.origin], ["backend-lost", "backend"]);
  close();
});

test("keepalive is set with its interval and count (F2)", async () => {
  const { near, close } = await openPair();
  const calls: unknown[][] = [];
  near.setKeepAlive = (...args: unknown[]): net.Socket => {
    calls.push(args);
    return near;
  };
  setKeepalive(near, noKeepalive);
  assert.equal(calls, [[true, 5000, 1000, 3]]);
  close();
});

test.run();
