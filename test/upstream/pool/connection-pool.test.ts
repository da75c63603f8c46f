import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { requestLimits } from "../../../src/proxy/request/limits.ts";
import { upstreamLimits } from "../../../src/upstream/pool/limits.ts";
import { poolKey } from "../../../src/upstream/pool/pool-key.ts";
import type { Waiter } from "../../../src/upstream/pool/shard.ts";
import { bearer, PlayedBackend, type PlayedClient, PlayedPath } from "../../support/path.ts";

const test = suite("upstream/pool/connection-pool");

function poolOf(path: PlayedPath): string[] {
  return (path.pools.poolOf("a")?.shards ?? []).flatMap((row) =>
    row.connections.map((connection) => connection.name.replace(/-\d+$/, "")),
  );
}

/** Returns a client whose token a backend has accepted. */
function proven(path: PlayedPath, token: string): PlayedClient {
  const client = path.client();
  client.ask("GET", "/api", [bearer(token)]);
  path.settle();
  path.backend("a").last.answer(200);
  path.settle();
  return client;
}

test("upstream connections are open before the first request", () => {
  assert.equal(poolOf(new PlayedPath(["a"])), ["proven-plain", "proven-long"]);
});

test("an unknown bearer travels apart until a backend took it; a 401 sends it back (D2)", () => {
  const path = new PlayedPath(["a"]);
  const client = proven(path, "t");
  assert.ok(poolOf(path).includes("unproven-plain"));
  const connectionOfNext = (): string => {
    const before = path.backend("a").sessions.map(({ session }) => session.openCount);
    client.ask("GET", "/api", [bearer("t")]);
    path.settle();
    const after = path.backend("a").sessions.map(({ session }) => session.openCount);
    return poolOf(path)[after.findIndex((count, index) => count > (before[index] ?? 0))] ?? "";
  };
  assert.is(connectionOfNext(), "proven-plain");
  path.backend("a").last.answer(401);
  path.settle();
  assert.is(connectionOfNext(), "unproven-plain");
});

test("short requests and watches never share an upstream connection", () => {
  const path = new PlayedPath(["a"]);
  const client = proven(path, "t");
  client.ask("GET", "/api/v1/pods?watch=1", [bearer("t")]);
  client.ask("GET", "/api/v1/pods", [bearer("t")]);
  path.settle();
  const counts = (path.pools.poolOf("a")?.shards ?? []).map((row) => [
    row.key.kind,
    row.connections.reduce((sum, connection) => sum + connection.openCount, 0),
  ]);
  assert.equal(counts.slice(0, 2), [
    ["plain", 1],
    ["long", 1],
  ]);
});

test("81 watches take a second upstream connection, which was dialled before it was needed", () => {
  const path = new PlayedPath(["a"]);
  const client = proven(path, "t");
  for (let index = 0; index < 90; index += 1) client.ask("GET", "/api/v1/pods?watch=1", [bearer("t")]);
  path.settle();
  assert.is(path.backend("a").asked.length, 91);
  assert.is(poolOf(path).filter((name) => name === "proven-long").length, 2);
});

test("a dead backend is dialled again, with no warm upstream connections configured too", () => {
  const path = new PlayedPath(["a"], { warm: 0, down: ["a"] });
  const refused = path.client().ask("GET", "/api");
  path.clock.advance(requestLimits.pendingMs);
  assert.is(refused.status, "503");
  path.backend("a").isDown = false;
  path.clock.advance(2_000);
  path.client().ask("GET", "/api");
  path.settle();
  assert.is(path.backend("a").asked.length, 1);
});

test("an upstream connection takes no more streams than its backend allows", () => {
  const path = new PlayedPath([]);
  assert.equal(path.backends.views, []);
  const small = new PlayedPath(["a"]);
  small.backend("a").maxStreams = 3;
  for (let index = 0; index < 7; index += 1) small.client().ask("GET", "/api", [bearer(`new-${index}`)]);
  small.settle();
  const connections =
    small.pools.poolOf("a")?.shards.find((row) => row.key.trust === "unproven")?.connections ?? [];
  assert.equal(
    connections.map((connection) => connection.openCount),
    [3, 3, 1],
  );
});

test("a silent upstream connection makes its backend suspect, then dies, and its requests go on", () => {
  const path = new PlayedPath(["a", "b"]);
  const ear = path.client().ask("GET", "/api", [bearer("t")]);
  path.settle();
  const [first, second] = ["a", "b"].toSorted(
    (x, y) => path.backend(y).asked.length - path.backend(x).asked.length,
  );
  for (const { cable } of path.backend(first ?? "").sessions) cable.blackHole();
  path.backend(first ?? "").isDown = true;
  path.clock.advance(900);
  assert.is(path.backends.views.find((view) => view.name === first)?.state, "suspect");
  path.clock.advance(1800);
  path.settle();
  assert.is(path.backends.views.find((view) => view.name === first)?.state, "dead");
  path.backend(second ?? "").last.answer(200, "ok");
  path.settle();
  assert.is(ear.body, "ok");
});

test("a hole under one upstream connection makes that upstream connection silent, not its backend suspect, and new requests use another (D6)", () => {
  const path = new PlayedPath(["a"]);
  const client = proven(path, "t");
  client.ask("GET", "/slow", [bearer("t")]);
  path.settle();
  path
    .backend("a")
    .sessions.find(({ session }) => session.openCount > 0)
    ?.cable.blackHole();
  path.clock.advance(1000);
  assert.is(path.backends.views[0]?.state, "ready");
  const ear = client.ask("GET", "/next", [bearer("t")]);
  path.clock.advance(300);
  path.backend("a").last.answer(200, "by another connection");
  path.settle();
  assert.is(ear.body, "by another connection");
});

test("an upstream connection that answers again after a silence is passed over for a while, where another has room", () => {
  const path = new PlayedPath(["a"]);
  const client = proven(path, "t");
  const ask = (): void => {
    client.ask("GET", "/x", [bearer("t")]);
    path.settle();
  };
  ask();
  const hurt = path.backend("a").sessions.find(({ session }) => session.openCount > 0);
  const letGo = hurt?.cable.hold();
  path.clock.advance(1000);
  letGo?.();
  path.clock.advance(250);
  const before = hurt?.session.openCount;
  ask();
  assert.is(hurt?.session.openCount, before, "another was dialled meanwhile");
  path.clock.advance(upstreamLimits.shakyConnectionMs);
  ask();
  assert.is(hurt?.session.openCount, (before ?? 0) + 1);
});

test("time during which the proxy's own loop stood still is held against no backend (F11)", () => {
  const path = new PlayedPath(["a"]);
  path.clock.advance(1000);
  path.clock.stall(5000);
  path.clock.advance(1000);
  assert.is(path.backends.views[0]?.state, "ready");
  assert.is(poolOf(path).length, 2);
});

test("a backend that comes back is dialled within a second and taken again", () => {
  const path = new PlayedPath(["a"]);
  path.backend("a").kill();
  path.settle();
  assert.is(path.backends.views[0]?.state, "dead");
  path.clock.advance(5000);
  path.backend("a").isDown = false;
  path.clock.advance(1000);
  assert.is(path.backends.views[0]?.state, "ready");
});

test("GOAWAY retires an upstream connection: what it has goes on, what is new travels on another", () => {
  const path = new PlayedPath(["a"]);
  const client = proven(path, "t");
  const watch = client.ask("GET", "/api/v1/pods?watch=1", [bearer("t")]);
  path.settle();
  const served = path.backend("a").last;
  path
    .backend("a")
    .sessions.find(({ session }) => session.openCount > 0)
    ?.session.goAway();
  path.settle();
  const later = client.ask("GET", "/api/v1/pods?watch=1", [bearer("t")]);
  path.clock.advance(300);
  path.backend("a").last.answer(200, "later");
  served.answer(200, "served");
  path.settle();
  assert.equal([watch.body, later.body], ["served", "later"]);
});

test("a removed backend that hangs is found out: requests that wait on it end within seconds", () => {
  const path = new PlayedPath(["a", "b"]);
  const client = path.client();
  const write = client.ask("DELETE", "/api/v1/namespaces/n/pods/p", [bearer("t")]);
  path.settle();
  const name = ["a", "b"].find((one) => path.backend(one).asked.length > 0) ?? "";
  for (const { cable } of path.backend(name).sessions) cable.blackHole();
  path.reconcile(["a", "b"].filter((one) => one !== name));
  path.clock.advance(3000);
  assert.is(write.status, "504");
  assert.is(path.exchanges.size, 0);
});

test("isPerClient none gives every client upstream connections of its own", () => {
  const path = new PlayedPath(["a"], { isPerClient: true });
  for (const token of ["t", "u"]) path.client().ask("GET", "/api", [bearer(token)]);
  path.settle();
  assert.is(poolOf(path).filter((name) => name.startsWith("private")).length, 2);
});

test("upstream connections beyond the warm ones go after a minute without a stream", () => {
  const path = new PlayedPath(["a"]);
  path.client().ask("GET", "/api");
  path.settle();
  path.backend("a").last.answer(200);
  path.clock.advance(62_000);
  assert.equal(poolOf(path), ["proven-plain", "proven-long"]);
});

test("a warm upstream connection is replaced before its apiserver ends it: 90 s without a stream, PING or not", () => {
  const path = new PlayedPath(["a"]);
  for (let second = 0; second < 300; second += 1) {
    path.clock.advance(1_000);
    path.settle();
    for (const { connections } of path.pools.poolOf("a")?.shards ?? []) {
      assert.ok(connections.some((connection) => connection.room > 0));
      assert.ok(connections.every((connection) => path.clock.now() - connection.idleSince < 90_000));
    }
  }
});

test("a client that hangs up while it waits leaves no trace", () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  path.settle();
  const ear = client.ask("GET", "/api");
  ear.stream.reset(8);
  path.settle();
  assert.is(path.exchanges.size, 0);
  assert.is(path.backend("a").asked.length, 0);
});

test("a backend whose PINGs are answered late is ready again as soon as they are", () => {
  const path = new PlayedPath(["a"]);
  path.clock.advance(300);
  const releases = path.backend("a").sessions.map(({ cable }) => cable.hold());
  path.clock.advance(1000);
  assert.is(path.backends.views[0]?.state, "suspect");
  releases[0]?.();
  path.clock.advance(100);
  assert.is(path.backends.views[0]?.state, "ready", "one connection that answers proves it alive");
  releases[1]?.();
  path.clock.advance(100);
  assert.is(path.backends.views[0]?.state, "ready");
});

test("when the one silent upstream connection of a backend dies, the others speak for it", () => {
  const path = new PlayedPath(["a"]);
  path.client().ask("GET", "/api", [bearer("new")]);
  path.settle();
  path
    .backend("a")
    .sessions.find(({ session }) => session.openCount > 0)
    ?.cable.blackHole();
  path.clock.advance(3000);
  assert.is(path.backends.views[0]?.state, "ready");
  assert.equal(poolOf(path).slice(0, 2), ["proven-plain", "proven-long"]);
});

test("requests that wait for a backend that is replaced go to its successor", () => {
  const path = new PlayedPath(["a"]);
  path.played.set("b", path.backend("a"));
  path.backend("a").isMute = true;
  const write = path.client().ask("POST", "/x", [bearer("t")]);
  path.settle();
  path.backend("a").isMute = false;
  path.reconcile(["b"]);
  path.settle();
  path.backend("a").last.answer(201);
  path.settle();
  assert.is(write.status, "201");
});

test("upstream connections that retire hold up no successor, however many watches they still have", () => {
  const path = new PlayedPath(["a"]);
  for (let index = 0; index <= 16; index += 1) {
    path.client().ask("GET", "/api/v1/pods?watch=1");
    path.clock.advance(300);
    assert.is(path.backend("a").asked.length, index + 1);
    for (const { session } of path.backend("a").sessions) if (session.openCount > 0) session.goAway();
    path.settle();
  }
});

test("when an upstream connection cannot be opened, requests that wait for it go to the next backend, whatever other upstream connections live", () => {
  const path = new PlayedPath(["a", "b"]);
  const client = path.client();
  client.ask("GET", "/bind", [bearer("t")]);
  path.settle();
  const [bound, other] = path.backend("a").asked.length > 0 ? ["a", "b"] : ["b", "a"];
  path.backend(bound).last.answer(200);
  path.settle();
  path.backend(bound).isDown = true;
  client.ask("POST", "/long/proxy", [bearer("new")]);
  client.ask("GET", "/api/v1/pods?watch=1", [bearer("new")]);
  path.settle();
  assert.is(path.backends.views.find(({ name }) => name === bound)?.state, "ready");
  assert.is(path.backend(other).asked.length, 1);
});

test("a request that waits for an unproven upstream connection takes a proven one as soon as its bearer is proven", () => {
  const path = new PlayedPath(["a"]);
  const trusting = path.client();
  trusting.ask("GET", "/api", [bearer("t")]);
  path.settle();
  const first = path.backend("a").last;
  path.backend("a").maxStreams = 0;
  const watch = path.client().ask("GET", "/api/v1/pods?watch=1", [bearer("t")]);
  path.clock.advance(1000);
  assert.is(path.backend("a").asked.length, 1);
  first.answer(200);
  path.clock.advance(1000);
  assert.is(path.backend("a").asked.length, 2);
  path.backend("a").last.answer(200);
  path.settle();
  assert.is(watch.status, "200");
});

test("no request waits for an upstream connection for ever: after its attempts it is refused, with Retry-After if it is safe", () => {
  const path = new PlayedPath(["a"]);
  path.backend("a").maxStreams = 0;
  const late = path.client().ask("GET", "/api/v1/pods?watch=1");
  path.clock.advance(upstreamLimits.connectionWaitMs);
  assert.is(late.status, "");
  path.clock.advance(limits.attempts * upstreamLimits.connectionWaitMs);
  assert.equal([late.status, late.heads[0]?.some(({ name }) => name === "retry-after")], ["429", true]);
});

test("beyond ten thousand requests that wait for an upstream connection the next one is told to come back", () => {
  const path = new PlayedPath(["a"], { warm: 0 });
  path.backend("a").isMute = true;
  const connections = path.pools.poolOf("a");
  const key = poolKey("unproven", "plain");
  const refused: string[] = [];
  const waiter = (): Waiter => ({
    key,
    rekey: () => key,
    ready() {},
    suspected() {},
    refused: ({ code }) => refused.push(code),
  });
  for (let index = 0; index < limits.waitingExchanges; index += 1) connections?.wait(waiter());
  assert.equal(refused, []);
  connections?.wait(waiter());
  assert.equal(refused, ["overload"]);
});

test("dials of a backend that is down come further and further apart, up to half a second", () => {
  const path = new PlayedPath(["a"]);
  const backoff: number[] = [];
  path.backend("a").kill();
  const { connect } = PlayedBackend.prototype;
  path.backend("a").connect = function dial(owner): ReturnType<typeof connect> {
    backoff.push(path.clock.now());
    return connect.call(this, owner);
  };
  path.clock.advance(5000);
  const times = [...new Set(backoff)];
  const apart = times.slice(1).map((at, index) => Math.round(at - (times[index] ?? 0)));
  assert.equal(apart.slice(0, 5), [
    upstreamLimits.redialFirstMs * 2,
    400,
    upstreamLimits.redialMostMs,
    upstreamLimits.redialMostMs,
    upstreamLimits.redialMostMs,
  ]);
});

test("clients with upstream connections of their own leave nothing behind, even if they never got one", () => {
  const path = new PlayedPath(["a"], { isPerClient: true });
  for (let index = 0; index < 2 * upstreamLimits.dialsPerSecond; index += 1) {
    const client = path.client();
    client.ask("GET", "/api", [bearer("t")]);
    path.settle();
    client.cable.cut("gone");
    path.settle();
  }
  const rows = (): number =>
    (path.pools.poolOf("a")?.shards ?? []).filter(({ key }) => key.owner !== "").length;
  path.clock.advance(2 * upstreamLimits.idleConnectionMs);
  assert.is(rows(), 0);
});

test("warm upstream connections that the budget held back come as soon as there is some", () => {
  const path = new PlayedPath(["a"]);
  const warm = poolOf(path);
  path.clock.advance(5000);
  for (const { cable } of path.backend("a").sessions) cable.cut("reset");
  path.clock.advance(upstreamLimits.redialFirstMs - 1);
  for (let index = 0; index < 3 * upstreamLimits.dialsPerSecond; index += 1) {
    const key = poolKey("private", "plain", `client-${index}`);
    path.pools.poolOf("a")?.wait({
      key,
      rekey: () => key,
      ready() {},
      suspected() {},
      refused() {},
    });
  }
  path.clock.advance(5000);
  assert.equal(
    poolOf(path).filter((name) => warm.includes(name)),
    warm,
  );
});

test.run();
