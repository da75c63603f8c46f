import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import type { Entry } from "../../../src/events/journal.ts";
import { requestLimits } from "../../../src/proxy/request/limits.ts";
import { flushGraceMs } from "../../../src/upstream/net/socket-end.ts";
import type { BackendTraits } from "../../../src/upstream/pool/backend-shares.ts";
import { upstreamLimits } from "../../../src/upstream/pool/limits.ts";
import type { PoolSet } from "../../../src/upstream/pool/pool-set.ts";
import { until } from "../../support/h1.ts";
import { hello } from "../../support/hello.ts";
import { loadsOf } from "../../support/loads.ts";
import { type ScriptedPassthrough, startPassthrough } from "../../support/passthrough.ts";
import { PlayedPath } from "../../support/path.ts";
import type { RawPeer } from "../../support/raw.ts";

const test = suite("proxy/tunnel/passthrough");

let scene: ScriptedPassthrough;
test.after.each(() => scene.close());

const greeting = hello({ serverName: "api.example.com" });

/** Returns a client and the backend's end of the tunnel to which the client is connected. */
async function join(name: string): Promise<{ readonly client: RawPeer; readonly backend: RawPeer }> {
  const client = await scene.connect();
  client.send(greeting);
  const backend = await scene.backend(name);
  await backend.expect("api.example.com");
  backend.send("server hello");
  await client.expect("server hello");
  return { client, backend };
}

function told<Kind extends Entry["kind"]>(kind: Kind): Extract<Entry, { kind: Kind }>[] {
  return scene.entries.filter((entry): entry is Extract<Entry, { kind: Kind }> => entry.kind === kind);
}

test("TLS passes untouched, and the end of the connection is journaled", async () => {
  scene = await startPassthrough(["a"]);
  const client = await scene.connect();
  for (const octet of greeting.subarray(0, 20)) client.send(Buffer.from([octet]));
  client.send(greeting.subarray(20));
  const backend = await scene.backend("a");
  await until("the hello", () => backend.text.length === greeting.length);
  assert.ok(Buffer.from(backend.text, "latin1").equals(greeting), "the hello is not what the client said");
  backend.send("answer");
  await client.expect("answer");
  client.send("more");
  await backend.expect("more");
  assert.is(scene.passthrough.openCount, 1);
  assert.equal([...scene.passthrough.counts], [["a", 1]]);
  scene.clock.advance(3_600_000);
  client.socket.end();
  await backend.ended();
  backend.socket.end();
  await client.closed();
  await until("the end", () => scene.passthrough.openCount === 0);
  const [ended] = told("passthrough.ended");
  const {
    client: address,
    listener,
    backend: name,
    serverName,
    reason,
    durationMs,
    sent,
    received,
  } = ended ?? {};
  assert.equal(
    { address, listener, name, serverName, reason, durationMs, sent },
    {
      address: "127.0.0.1",
      listener: "nodes",
      name: "a",
      serverName: "api.example.com",
      reason: "ended",
      durationMs: 3_600_000,
      sent: 6,
    },
  );
  assert.is(received, greeting.length + 4);
  assert.equal(scene.passthrough.bytes, { sent: 6, received: greeting.length + 4 });
  await until("the socket to be forgotten", () => scene.passthrough.counts.size === 0);
});

/** Opens client connections one after another, and returns the backend that gets each of them. */
async function openInTurn(names: readonly string[], count: number): Promise<string[]> {
  const opened: string[] = [];
  for (let number = 0; number < count; number += 1) {
    const before = names.map((name) => scene.countAt(name));
    const client = await scene.connect();
    client.send(greeting);
    const chosen = (): string | undefined =>
      names.find((name, at) => scene.countAt(name) > (before[at] ?? 0));
    await until("the next socket", () => chosen() !== undefined);
    opened.push(chosen() ?? "");
  }
  return opened;
}

const countsOf = (opened: readonly string[], names: readonly string[]): number[] =>
  names.map((name) => opened.filter((one) => one === name).length);

test("of two equal backends, each new connection goes to the one that has fewer", async () => {
  scene = await startPassthrough(["a", "b"]);
  const clients = await Promise.all(Array.from({ length: 6 }, () => scene.connect()));
  for (const client of clients) client.send(greeting);
  await until("six sockets", () => scene.countAt("a") + scene.countAt("b") === 6);
  assert.is(scene.countAt("a"), 3);
});

test("of three backends, two are drawn at random, and the one that has fewer connections is used", async () => {
  const names = ["a", "b", "c"];
  const draw = { first: "a", second: "b" };
  /** A backend is drawn by two random numbers: the first selects it, and the second its distance to the other one. */
  const random = (): (() => number) => {
    const [first, second] = [names.indexOf(draw.first), names.indexOf(draw.second)];
    const numbers = [(first + 0.5) / 3, (((second - first + 3) % 3) - 0.5) / 2];
    return () => numbers.shift() ?? 0;
  };
  scene = await startPassthrough(names, undefined, (besides) => loadsOf(besides, { random: random() }));
  assert.equal(countsOf(await openInTurn(names, 4), names), [2, 2, 0]);
  Object.assign(draw, { first: "b", second: "c" });
  assert.equal(countsOf(await openInTurn(names, 2), names), [0, 0, 2]);
  Object.assign(draw, { first: "a", second: "c" });
  assert.equal(countsOf(await openInTurn(names, 4), names), [2, 0, 2]);
});

/** Returns the loads of a PoolSet whose backends have these weights and zones, and have been ready for long. */
function loadsFrom(traits: Readonly<Record<string, BackendTraits>>): PoolSet["loadsWith"] {
  const path = new PlayedPath(Object.keys(traits), {
    traitsOf: (name) => traits[name] ?? { weight: 1, isNear: true },
  });
  path.clock.advance(upstreamLimits.slowStartMs + 1000);
  return (besides) => path.pools.loadsWith(besides);
}

test("a backend of weight 3 gets three times the connections of one of weight 1", async () => {
  const names = ["a", "b"];
  const loads = loadsFrom({ a: { weight: 1, isNear: true }, b: { weight: 3, isNear: true } });
  scene = await startPassthrough(names, undefined, loads);
  assert.equal(countsOf(await openInTurn(names, 16), names), [4, 12]);
});

test("a connection leaves the own zone if its backend has far more connections, or is not ready", async () => {
  const names = ["far", "farther", "near"];
  const [far, near] = [
    { weight: 1, isNear: false },
    { weight: 1, isNear: true },
  ];
  const loads = loadsFrom({ far, farther: far, near });
  scene = await startPassthrough(names, undefined, loads);
  const { spillRatio, spillFloor } = upstreamLimits;
  const most = spillRatio + spillFloor;
  assert.equal(countsOf(await openInTurn(names, most), names), [0, 0, most]);
  assert.equal(await openInTurn(names, 3), ["far", "farther", "near"]);
  scene.close();
  scene = await startPassthrough(names, undefined, loads);
  scene.judge("near", "suspect");
  assert.equal(await openInTurn(names, 2), ["far", "farther"]);
});

test("a backend that has asked for a pause gets no connection while another has not", async () => {
  const names = ["a", "b"];
  const paused = new Set(["a"]);
  const isPaused = (name: string): boolean => paused.has(name);
  scene = await startPassthrough(names, undefined, (besides) => loadsOf(besides, { isPaused }));
  assert.equal(await openInTurn(names, 3), ["b", "b", "b"]);
  paused.add("b");
  assert.equal(await openInTurn(names, 1), ["a"]);
});

test("a backend that is suspect or goes gets none while another is ready, and keeps what it has", async () => {
  for (const state of ["suspect", "draining"] as const) {
    scene = await startPassthrough(["a", "b"]);
    const { client, backend } = await join("a");
    await join("b");
    scene.judge("a", state);
    for (let count = 0; count < 3; count += 1) await join("b");
    assert.is(scene.countAt("a"), 1, state);
    client.send("still here");
    await backend.expect("still here");
    scene.close();
  }
});

test("proven dead, both attempts are reset; those of other backends, and of one that only refuses, are not", async () => {
  scene = await startPassthrough(["a", "b"]);
  const dying = await join("a");
  const other = await join("b");
  const errors: string[] = [];
  for (const { socket } of [dying.client, dying.backend])
    socket.on("error", (error: Error & { code?: string }) => errors.push(error.code ?? ""));
  scene.judge("a", "suspect");
  // "refusing" is a graceful stop of the backend: it refuses new sockets, and its open sockets may end by themselves.
  scene.judge("a", "refusing");
  dying.client.send("still here");
  await dying.backend.expect("still here");
  scene.judge("a", "dead");
  await Promise.all([dying.client.closed(), dying.backend.closed()]);
  assert.equal(errors, ["ECONNRESET", "ECONNRESET"]);
  assert.equal(
    told("passthrough.ended").map(({ backend, reason }) => [backend, reason]),
    [["a", "backend_dead"]],
  );
  other.client.send("still here");
  await other.backend.expect("still here");
  await join("b");
  assert.is(scene.countAt("a"), 1);
});

test("what is left on a backend that was removed ends as a drain would end it, unless it comes back", async () => {
  scene = await startPassthrough(["a", "b"]);
  const left = await join("a");
  const other = await join("b");
  scene.passthrough.reconcile(["b"], 60_000);
  scene.clock.advance(59_000);
  scene.passthrough.reconcile(["a", "b"], 60_000);
  scene.clock.advance(60_000);
  left.client.send("still here");
  await left.backend.expect("still here");
  scene.passthrough.reconcile(["b"], 60_000);
  scene.clock.advance(59_000);
  assert.equal(told("passthrough.ended"), []);
  scene.clock.advance(1000);
  await Promise.all([left.client.closed(), left.backend.closed()]);
  assert.equal(
    told("passthrough.ended").map(({ backend, reason }) => [backend, reason]),
    [["a", "backend_removed"]],
  );
  other.client.send("still here");
  await other.backend.expect("still here");
});

test("one whose own connection is in a hole is cut (D6)", async () => {
  scene = await startPassthrough(["a"]);
  const { client } = await join("a");
  scene.stick();
  await client.closed();
  assert.is(told("passthrough.ended")[0]?.reason, "connection_stuck");
});

test("a backend that accepts and is silent costs a client half a second", async () => {
  scene = await startPassthrough(["a", "b"]);
  const client = await scene.connect();
  client.send(greeting);
  const frozen = await scene.backend("a");
  await frozen.expect("api.example.com");
  scene.clock.advance(500);
  const well = await scene.backend("b");
  await well.expect("api.example.com");
  well.send("server hello");
  await client.expect("server hello");
  await frozen.ended();
  assert.equal([...scene.passthrough.counts], [["b", 1]]);
});

test("while no backend can be reached it waits, and goes on with the first that is back", async () => {
  scene = await startPassthrough(["a"]);
  scene.judge("a", "dead");
  const client = await scene.connect();
  client.send(greeting);
  await until("the wait", () => scene.hold.size === 1);
  assert.is(scene.passthrough.openCount, 1);
  scene.judge("a", "ready");
  scene.clock.turn();
  const backend = await scene.backend("a");
  await backend.expect("api.example.com");
});

test("when none comes back it is refused by an end without an answer, which client-go asks again after", async () => {
  scene = await startPassthrough(["a"]);
  scene.judge("a", "dead");
  const client = await scene.connect();
  client.send(greeting);
  await until("the wait", () => scene.hold.size === 1);
  scene.clock.advance(requestLimits.pendingMs);
  assert.is(await client.ended(), "");
  const [refused] = told("passthrough.refused");
  assert.equal([refused?.code, refused?.client, refused?.listener], ["no-backend", "127.0.0.1", "nodes"]);
  assert.is(scene.passthrough.openCount, 0);
});

test("a client that does not use TLS gets a 400, and reaches no backend", async () => {
  scene = await startPassthrough(["a"]);
  const plain = await scene.connect();
  plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await plain.expect("an HTTP request to an HTTPS port");
  const broken = await scene.connect();
  broken.send(Buffer.from([0x16, 3, 1, 0, 0]));
  await broken.expect("\x15\x03\x03\0\x02\x02\x32");
  assert.equal(
    told("passthrough.refused").map(({ message }) => message),
    ["Client does not use TLS", "ClientHello is malformed: it has a record of 0 bytes"],
  );
  assert.is(scene.countAt("a"), 0);
  scene.clock.advance(flushGraceMs);
  await Promise.all([plain.ended(), broken.ended()]);
});

test("a slow hello ends at its deadline, and reaches no backend (A22)", async () => {
  scene = await startPassthrough(["a"]);
  const client = await scene.connect();
  client.send(greeting.subarray(0, -1));
  await new Promise((resolve) => setTimeout(resolve, 30));
  scene.clock.advance(limits.handshakeMs);
  await client.ended();
  assert.is(scene.countAt("a"), 0);
  assert.is(scene.passthrough.openCount, 0);
});

test("a client that ends without a hello is gone at once", async () => {
  scene = await startPassthrough(["a"]);
  const client = await scene.connect();
  client.send(greeting.subarray(0, 9));
  client.socket.end();
  await client.closed();
});

test("names are routed to their backends, and one without a route is refused by its alert", async () => {
  const routes = [{ serverNames: ["api.example.com"], cluster: "", backends: ["b"] }];
  scene = await startPassthrough(["a", "b"], routes);
  await join("b");
  await join("b");
  assert.is(scene.countAt("a"), 0);
  for (const serverName of ["other.example.com", undefined]) {
    const client = await scene.connect();
    client.send(hello(serverName === undefined ? {} : { serverName }));
    await client.expect("\x15\x03\x03\0\x02\x02\x70");
  }
  assert.is(told("passthrough.refused")[0]?.message, "No route for this server name");
});

test("a client that has left before it was joined leaves nothing behind", async () => {
  scene = await startPassthrough(["a"]);
  const client = await scene.connect();
  client.send(greeting);
  const backend = await scene.backend("a");
  await backend.expect("api.example.com");
  client.socket.resetAndDestroy();
  await client.closed();
  backend.send("server hello");
  await backend.ended();
  await until("the end", () => scene.passthrough.openCount === 0 && scene.passthrough.counts.size === 0);
});

test("a stop cuts what is left", async () => {
  scene = await startPassthrough(["a"]);
  const joined = await Promise.all([join("a"), join("a"), join("a")]);
  scene.passthrough.cut();
  await Promise.all(joined.map(({ client }) => client.closed()));
  assert.equal(
    told("passthrough.ended").map(({ reason }) => reason),
    ["draining", "draining", "draining"],
  );
  assert.is(scene.passthrough.openCount, 0);
});

test.run();
