import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../../src/h2/core/field.ts";
import type { Evidence } from "../../../src/health/evidence.ts";
import { upstreamLimits } from "../../../src/upstream/pool/limits.ts";
import { bearer, PlayedPath } from "../../support/path.ts";

const test = suite("upstream/pool/pool-health");

/** Returns a data path with one backend, and the list of all evidence about that backend. */
function listen(): { path: PlayedPath; said: Evidence[] } {
  const path = new PlayedPath(["a"]);
  path.clock.advance(300);
  const said: Evidence[] = [];
  const { backends } = path;
  const learn = backends.learn.bind(backends);
  backends.learn = (name, evidence) => {
    said.push(evidence);
    learn(name, evidence);
  };
  return { path, said };
}

const kinds = (said: readonly Evidence[]): string[] => [...new Set(said.map(({ kind }) => kind))];

test("one silent upstream connection among others says nothing of the backend; all of them do, with how long and the bound", () => {
  const { path, said } = listen();
  const [first, second] = path.backend("a").sessions;
  first?.cable.blackHole();
  path.clock.advance(1000);
  assert.equal(said, []);
  second?.cable.blackHole();
  path.clock.advance(800);
  const [evidence] = said;
  assert.is(evidence?.kind, "connections-silent");
  assert.ok(evidence?.kind === "connections-silent" && evidence.ms >= 500 && evidence.limitMs === 500);
});

/**
 * Freezes the backend's process: none of its sessions except those in `except` answers PINGs. Its kernel still accepts
 * bytes.
 */
function freeze(path: PlayedPath, ...except: readonly unknown[]): void {
  for (const one of path.backend("a").sessions) if (!except.includes(one)) one.session.ping = () => {};
}

test("bytes on a silent upstream connection clear what waits there; only a PING's answer speaks for the backend", () => {
  const { path, said } = listen();
  path.client().ask("GET", "/api/v1/pods?watch=1", [bearer("t")]);
  path.settle();
  const { last } = path.backend("a");
  freeze(path);
  path.clock.advance(1400);
  assert.ok(kinds(said).includes("connections-silent"));
  last.answer(200, "{}");
  path.settle();
  const connections = path.pools.poolOf("a")?.shards.flatMap((row) => row.connections) ?? [];
  assert.equal(
    [connections.filter((connection) => connection.isSuspect).length, said.at(-1)?.kind],
    [connections.length - 1, "connections-silent"],
  );
  path.clock.advance(500);
  assert.is(path.backends.views[0]?.state, "suspect");
});

test("a frozen process is seen in time, though its kernel has bytes of an answer to send for seconds", () => {
  const { path, said } = listen();
  path.client().ask("GET", "/api/v1/pods", [bearer("t")]);
  path.settle();
  const { last } = path.backend("a");
  last.side?.sendHeaders([new Field(":status", "200")], false);
  path.settle();
  freeze(path);
  for (let ms = 0; ms < 1000; ms += 50) {
    last.say("octets ".repeat(100));
    path.clock.advance(50);
  }
  assert.ok(kinds(said).includes("connections-silent"), "within a second of the fault");
  const evidence = said.find(({ kind }) => kind === "connections-silent");
  assert.ok(evidence?.kind === "connections-silent" && evidence.ms >= 500);
});

test("a large answer on a slow path is no silence: a late PING on its upstream connection, and others that answer", () => {
  const { path, said } = listen();
  path.client().ask("GET", "/api/v1/pods", [bearer("t")]);
  path.settle();
  const { last, sessions } = path.backend("a");
  last.side?.sendHeaders([new Field(":status", "200")], false);
  path.settle();
  freeze(path, ...sessions.filter(({ session }) => session.openCount === 0));
  said.length = 0;
  for (let ms = 0; ms < 5000; ms += 50) {
    last.say("octets ".repeat(100));
    path.clock.advance(50);
  }
  assert.equal(said, []);
  const connections = path.pools.poolOf("a")?.shards.flatMap((row) => row.connections) ?? [];
  assert.ok(connections.every((connection) => !connection.isSuspect));
});

test("GOAWAY on one upstream connection is that upstream connection's; on all of them the backend is going", () => {
  const { path, said } = listen();
  path.client().ask("GET", "/a", [bearer("t")]);
  path.settle();
  const open = path.backend("a").sessions.filter(({ session }) => session.openCount > 0);
  for (const { session } of open) session.goAway();
  path.settle();
  assert.not(kinds(said).includes("connections-going"));
  path.backend("a").isDown = true;
  for (const { session } of path.backend("a").sessions) session.goAway();
  path.settle();
  assert.ok(kinds(said).includes("connections-going"));
  assert.is(path.backends.views[0]?.state, "draining");
  path.clock.advance(5000);
  assert.is(
    path.backends.views[0]?.state,
    "draining",
    "new sockets are refused, and what is there is served",
  );
  path.backend("a").last.answer(200);
  path.settle();
  // The backend's last upstream connection has closed without an error. The next dial is refused, because the server no
  // longer listens.
  path.clock.advance(1000);
  assert.is(path.backends.views[0]?.state, "dead");
});

test("the last upstream connection's loss is told, and what a failed dial met", () => {
  const { path, said } = listen();
  path.backend("a").kill();
  path.settle();
  path.clock.advance(200);
  const lost = said.find(({ kind }) => kind === "connections-lost");
  assert.ok(lost?.kind === "connections-lost" && lost.by === "socket" && lost.reason === "read ECONNRESET");
  const fresh = said.find(({ kind }) => kind === "fresh");
  assert.ok(fresh?.kind === "fresh" && fresh.met === "refusal");
});

test("what ended the last upstream connection is told: its silence, its socket or its dial", () => {
  const by = (hurt: (path: PlayedPath) => void): string => {
    const { path, said } = listen();
    hurt(path);
    path.clock.advance(12_000);
    return said
      .flatMap((evidence) => (evidence.kind === "connections-lost" ? [evidence.by] : []))
      .slice(0, 1)
      .join();
  };
  assert.is(
    by((path) => path.backend("a").blackHole()),
    "ping",
  );
  const fin = (path: PlayedPath): void => {
    for (const { cable } of path.backend("a").sessions) cable.cut("");
  };
  assert.is(by(fin), "socket");
  const { path, said } = listen();
  path.backend("a").isDown = true;
  path.reconcile([]);
  path.reconcile(["a"]);
  path.settle();
  assert.ok(said.some((evidence) => evidence.kind === "connections-lost" && evidence.by === "dial"));
});

test("a dial that waits in vain for a session has met silence", () => {
  const { path, said } = listen();
  path.backend("a").isMute = true;
  for (const { cable } of path.backend("a").sessions) cable.cut("read ECONNRESET");
  path.clock.advance(3000);
  const fresh = said.find(({ kind }) => kind === "fresh");
  assert.ok(fresh?.kind === "fresh" && fresh.met === "silence");
});

test("an upstream connection that was let go for being idle is no loss: its backend stays ready", () => {
  const path = new PlayedPath(["a", "b"], { isProbed: true, warm: 0 });
  path.clock.advance(2_000);
  const client = path.client();
  const ears = ["a", "b"].map(() => client.ask("GET", "/api", [bearer("t")]));
  path.settle();
  for (const backend of path.played.values()) for (const asked of backend.asked) asked.answer(200, "x");
  path.settle();
  assert.equal(
    ears.map(({ status }) => status),
    ["200", "200"],
  );
  path.clock.advance(5 * upstreamLimits.idleConnectionMs);
  assert.equal(
    path.changes.filter(({ to }) => to !== "ready"),
    [],
  );
});

test.run();
