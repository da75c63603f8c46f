/** Each setting of `health`, `watches`, `connectionPool` and `logging` takes effect immediately after a reload. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limitOf } from "../../src/ops/config/limit.ts";
import type { PathSettings } from "../../src/proxy/cluster/data-path.ts";
import { bearer, type PlayedClient, PlayedPath } from "../support/path.ts";
import { ok, PlayedWatch } from "../support/watch-path.ts";

const test = suite("flows/changed-settings");

const ping = { intervalMs: 250, suspectAfterMs: 500, deadAfterMs: 2000, deadAfterWhenAllSilentMs: 10_000 };
const probe = { intervalMs: 1000, timeoutMs: 2000 };
const settings: PathSettings = { ping, connections: { streams: 80, warm: 1 }, alwaysRequestBookmarks: false };

/** A data path with `settings` and two ready backends. */
function runningPath(): PlayedPath {
  const path = new PlayedPath(["a", "b"], { isProbed: true });
  path.clock.advance(5000);
  return path;
}

/** Milliseconds from the moment at which backend a becomes a black hole until its state is `to`. */
function msUntil(path: PlayedPath, to: string): number {
  const from = path.clock.now();
  path.backend("a").blackHole();
  path.clock.advance(30_000);
  return (path.changes.find((change) => change.at >= from && change.to === to)?.at ?? Infinity) - from;
}

/** The increase of `count` within one second. */
function perSecond(path: PlayedPath, count: () => number): number {
  const before = count();
  path.clock.advance(1000);
  return count() - before;
}

test("health.ping.suspectAfter and health.ping.deadAfter are the new deadlines", () => {
  const before = msUntil(runningPath(), "suspect");
  const path = runningPath();
  path.configure({ ...settings, ping: { ...ping, suspectAfterMs: 1500, deadAfterMs: 6000 } }, probe);
  const after = msUntil(path, "suspect");
  assert.ok(before <= 750 && after >= 1500 && after <= 1750, `${before} ms, ${after} ms`);
});

test("a shorter health.ping.suspectAfter also judges the connections that are silent now", () => {
  const path = runningPath();
  path.configure({ ...settings, ping: { ...ping, suspectAfterMs: 20_000, deadAfterMs: 25_000 } }, probe);
  path.backend("a").blackHole();
  path.clock.advance(1900);
  assert.is(path.backends.stateOf("a"), "ready");
  path.configure(settings, probe);
  path.clock.advance(0);
  assert.is(path.backends.stateOf("a"), "suspect");
});

test("health.ping.deadAfter closes silent connections after the new time", () => {
  const closedAfter = (deadAfterMs: number): number => {
    const path = runningPath();
    path.configure({ ...settings, ping: { ...ping, deadAfterMs } }, probe);
    const from = path.clock.now();
    path.backend("a").blackHole();
    for (let ms = 0; ms < 20_000; ms += 50) {
      path.clock.advance(50);
      if (path.entries.some((one) => one.kind === "upstream_connection.closed")) break;
    }
    return path.clock.now() - from;
  };
  const [soon, late] = [closedAfter(1000), closedAfter(8000)];
  assert.ok(soon >= 1000 && soon <= 1600 && late >= 8000 && late <= 8600, `${soon} ms, ${late} ms`);
});

test("health.ping.deadAfterWhenAllSilent keeps open requests for the new time", () => {
  const silentFor = (deadAfterWhenAllSilentMs: number): boolean => {
    const path = runningPath();
    path.configure({ ...settings, ping: { ...ping, deadAfterWhenAllSilentMs } }, probe);
    for (const name of ["a", "b"]) path.backend(name).blackHole();
    path.clock.advance(15_000);
    return path.backends.areAllSilent;
  };
  assert.equal([silentFor(10_000), silentFor(60_000)], [false, true]);
});

test("health.ping.interval is the time between PINGs, without a wait for the end of the old interval", () => {
  const path = runningPath();
  path.configure({ ...settings, ping: { ...ping, intervalMs: 60_000 } }, probe);
  path.clock.advance(1000);
  const pings = (): number => path.pools.poolOf("a")?.pings.count ?? 0;
  assert.is(perSecond(path, pings), 0);
  path.configure({ ...settings, ping: { ...ping, intervalMs: 100 } }, probe);
  // Two warm connections with ten PINGs each.
  assert.is(perSecond(path, pings), 20);
});

test("health.probe.interval is the time between probes, without a wait for the end of the old interval", () => {
  const path = runningPath();
  const probes = (): number => path.backend("a").probeCount;
  path.configure(settings, { ...probe, intervalMs: 60_000 });
  path.clock.advance(1100);
  assert.is(perSecond(path, probes), 0);
  path.configure(settings, { ...probe, intervalMs: 250 });
  assert.is(perSecond(path, probes), 4);
});

test("health.probe.timeout applies to the probe that runs", () => {
  const path = runningPath();
  path.configure(settings, { ...probe, timeoutMs: 60_000 });
  path.backend("a").readyz = "hanging";
  path.clock.advance(5000);
  assert.is(path.backends.stateOf("a"), "ready");
  path.configure(settings, { ...probe, timeoutMs: 250 });
  path.clock.advance(1);
  assert.is(path.backends.stateOf("a"), "suspect");
});

test("verdicts, connections and open watches stay", () => {
  const path = runningPath();
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a");
  const [changes, sessions] = [path.changes.length, path.backend("a").sessions.length];
  path.configure(
    { ...settings, ping: { ...ping, intervalMs: 100 }, staleReadGuard: "Enforce" },
    { intervalMs: 250, timeoutMs: 500 },
  );
  path.clock.advance(2000);
  watch.serve(watch.from, "~9a", []);
  watch.has("+8a ~9a");
  assert.equal([path.changes.length, path.backend("a").sessions.length], [changes, sessions]);
});

test("a backend that is added after the reload has the new settings", () => {
  const path = runningPath();
  path.configure({ ...settings, ping: { ...ping, suspectAfterMs: 1500, deadAfterMs: 6000 } }, probe);
  path.reconcile(["b"]);
  path.reconcile(["a", "b"]);
  path.clock.advance(5000);
  const after = msUntil(path, "suspect");
  assert.ok(after >= 1500 && after <= 1750, `${after} ms`);
});

test("watches.alwaysRequestBookmarks applies to watches that open from now on", () => {
  const path = runningPath();
  const query = (): string => {
    const watch = new PlayedWatch({ path });
    return watch.queryOf(watch.from);
  };
  assert.not.match(query(), "allowWatchBookmarks");
  path.configure({ ...settings, alwaysRequestBookmarks: true }, probe);
  assert.match(query(), "allowWatchBookmarks=true");
});

test("watches.staleReadGuard applies to the next read", () => {
  const path = runningPath();
  const client = path.client();
  const list = (): string => {
    client.ask("GET", "/api/v1/configmaps?resourceVersion=0", [bearer("t")]);
    path.settle();
    const asked = [path.backend("a"), path.backend("b")].flatMap((backend) => backend.asked).at(-1);
    asked?.side?.sendHeaders(ok, false);
    asked?.say(
      '{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"50"},"items":[]}',
      true,
    );
    path.settle();
    return asked?.request.path ?? "";
  };
  list();
  assert.match(list(), "resourceVersion=0");
  path.configure({ ...settings, staleReadGuard: "Enforce" }, probe);
  assert.match(list(), "resourceVersion=50");
  path.configure({ ...settings, staleReadGuard: "Disabled" }, probe);
  assert.match(list(), "resourceVersion=0");
});

test("clusters.limits apply to the next request on open connections, and keep their counts if they stay", () => {
  const path = runningPath();
  const client = path.client();
  const list = (): string => {
    const ear = client.ask("GET", "/api/v1/secrets", [bearer("t")]);
    path.settle();
    return ear.status;
  };
  const one = limitOf({ name: "one", verbs: ["list"], rate: "1/h" });
  assert.is(list(), "");
  path.configure({ ...settings, limits: [one] }, probe);
  assert.equal([list(), list()], ["", "429"]);
  path.configure({ ...settings, limits: [one, limitOf({ name: "two", users: ["x"], rate: "1/s" })] }, probe);
  assert.is(list(), "429");
  path.configure({ ...settings, limits: [] }, probe);
  assert.is(list(), "");
});

const resource = "/apis/far.example.com/v1/things";

test("watches.customResourceAPIGroups makes the open watches of the group movable", () => {
  const path = runningPath();
  const watch = new PlayedWatch({ path, resource });
  watch.serve(watch.from, "+8a");
  assert.equal(Array.from(path.migrations.watches.resources), []);
  path.configure({ ...settings, customResourceAPIGroups: ["far.example.com"] }, probe);
  path.settle();
  assert.equal(Array.from(path.migrations.watches.resources), ["far.example.com/things"]);
  watch.kill(watch.from);
  watch.advance(2000);
  watch.serve(watch.to, "~9a");
  watch.has("+8a ~9a");
});

test("watches.aggregatedAPIGroups ends the moves of the group's open watches", () => {
  const path = runningPath();
  const watch = new PlayedWatch({ path, resource: "/apis/stable.example.com/v1/things" });
  watch.serve(watch.from, "+8a");
  path.configure({ ...settings, aggregatedAPIGroups: ["stable.example.com"] }, probe);
  watch.kill(watch.from);
  watch.advance(2000);
  assert.is(watch.to.asked.length, 0, "no other backend is asked");
});

/** Opens `count` watches with a proven token. */
function openWatches(client: PlayedClient, path: PlayedPath, count: number): void {
  for (let index = 0; index < count; index += 1) client.ask("GET", "/api/v1/pods?watch=1", [bearer("t")]);
  path.settle();
}

test("clusters.connectionPool.maxStreamsPerConnection limits the connections that are open", () => {
  const path = runningPath();
  const client = path.client();
  client.ask("GET", "/api", [bearer("t")]);
  path.settle();
  for (const name of ["a", "b"]) path.backend(name).asked.at(-1)?.answer(200);
  path.settle();
  const connections = (): number =>
    [path.backend("a"), path.backend("b")].reduce((sum, { sessions }) => sum + sessions.length, 0);
  openWatches(client, path, 5);
  const before = connections();
  path.configure({ ...settings, connections: { streams: 6, warm: 1 } }, probe);
  openWatches(client, path, 20);
  assert.ok(connections() >= before + 3, `${before}, ${connections()}`);
});

test("clusters.connectionPool.minIdleConnections opens idle connections at the next tick", () => {
  const path = runningPath();
  const before = path.backend("a").sessions.length;
  path.configure({ ...settings, connections: { streams: 80, warm: 2 } }, probe);
  path.clock.advance(1000);
  assert.is(path.backend("a").sessions.length, before + 2);
});

test("logging.accessLog applies to requests that end from now on", () => {
  const path = runningPath();
  const ended = (): number => path.entries.filter(({ kind }) => kind === "request.ended").length;
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a");
  path.configure({ ...settings, accessLog: "LongRunning" }, probe);
  watch.client.hangUp();
  path.settle();
  assert.is(ended(), 1);
});

test.run();
