import { suite } from "uvu";
import * as assert from "uvu/assert";
import { PlayedPath } from "../support/path.ts";

const test = suite("health/probers");

const stateOf = (path: PlayedPath, name: string): string =>
  path.backends.views.find((view) => view.name === name)?.state ?? "";

/** Two backends with open upstream connections. */
function start(): PlayedPath {
  const path = new PlayedPath(["a", "b"], { isProbed: true });
  path.clock.advance(2000);
  return path;
}

test("a black hole: suspect within 0.8 s, dead within 3, whatever the phase", () => {
  for (let phase = 0; phase < 250; phase += 10) {
    const path = start();
    path.clock.advance(phase);
    path.backend("a").blackHole();
    const holeAt = path.clock.now();
    path.clock.advance(3000);
    const at = (to: string): number =>
      (path.changes.find((change) => change.to === to)?.at ?? Number.NaN) - holeAt;
    assert.ok(at("suspect") <= 760, `suspect after ${at("suspect")}`);
    assert.ok(at("dead") >= 1990 && at("dead") <= 2300, `dead after ${at("dead")}`);
  }
});

test("a killed process is dead as soon as its sockets are reset and a new one is refused", () => {
  const path = start();
  path.backend("a").kill();
  path.clock.advance(20);
  assert.is(stateOf(path, "a"), "dead");
});

test("a black hole of 1.5 s costs no client anything: no upstream connection, no verdict of death", () => {
  const path = start();
  const connections = path.backend("a").sessions.length;
  const releases = path.backend("a").sessions.map(({ cable }) => cable.hold());
  path.backend("a").isMute = true;
  path.clock.advance(1500);
  path.backend("a").isMute = false;
  // The kernel retransmits the lost packets 3.0 s after it first sent them.
  path.clock.advance(1500);
  for (const release of releases) release();
  path.clock.advance(2000);
  assert.is(stateOf(path, "a"), "ready");
  assert.not(path.changes.some(({ to }) => to === "dead"));
  // Afterwards there are two idle connections, the old one and a newer one. The proxy closes one of them, in good
  // order.
  assert.not(
    path.entries.some((entry) => entry.kind === "upstream_connection.closed" && entry.reason !== "ended"),
  );
  assert.ok(path.backend("a").sessions.length <= 2 * connections);
});

test("one that answers PING but not /readyz gets nothing new within 5 s, and is never dead", () => {
  for (const readyz of ["hanging", "failing"] as const) {
    const path = start();
    path.backend("a").readyz = readyz;
    path.clock.advance(5000);
    assert.is(stateOf(path, "a"), "suspect");
    path.clock.advance(60_000);
    assert.not(path.changes.some(({ to }) => to === "dead"));
    path.backend("a").readyz = "ready";
    path.clock.advance(7000);
    assert.is(stateOf(path, "a"), "ready");
  }
});

test("one that says that it shuts down is draining, and dead only when nothing of it is left", () => {
  const path = start();
  path.backend("a").readyz = "shutdown";
  path.clock.advance(1200);
  assert.is(stateOf(path, "a"), "draining");
  path.backend("a").kill();
  path.clock.advance(20);
  assert.is(stateOf(path, "a"), "dead");
});

test("flapping each second makes two verdicts at most, and the way back takes longer each time (F15)", () => {
  const path = start();
  const { sessions } = path.backend("a");
  for (let round = 0; round < 15; round += 1) {
    const releases = sessions.map(({ cable }) => cable.hold());
    path.backend("a").isMute = true;
    path.clock.advance(1000);
    path.backend("a").isMute = false;
    for (const release of releases) release();
    path.clock.advance(1000);
  }
  const ups = path.changes.filter(({ name, to }) => name === "a" && to === "ready");
  assert.ok(ups.length <= 2, `${ups.length} times`);
  path.clock.advance(20_000);
  assert.is(stateOf(path, "a"), "ready");
});

test("the only backend is back within a second of its return, and serves", () => {
  for (const awayMs of [12_000, 12_300, 60_000, 3_600_000]) {
    const path = new PlayedPath(["a"], { isProbed: true });
    path.clock.advance(2000);
    path.backend("a").blackHole();
    path.clock.advance(awayMs);
    assert.is(stateOf(path, "a"), "dead");
    path.backend("a").isMute = false;
    path.clock.advance(1000);
    assert.is(stateOf(path, "a"), "ready", `after ${awayMs}`);
    path.client().ask("GET", "/api");
    path.clock.advance(50);
    assert.is(path.backend("a").asked.length, 1);
  }
});

test("under another name nothing new is dialled, existing upstream connections go on, and a right certificate ends it", () => {
  const path = start();
  const { sessions } = path.backend("a");
  path.backend("a").isUntrusted = true;
  path.clock.advance(1200);
  assert.is(stateOf(path, "a"), "suspect");
  const [first] = sessions;
  first?.cable.cut("read ECONNRESET");
  const before = sessions.length;
  path.clock.advance(10_000);
  assert.is(sessions.length, before, "no new dials");
  assert.not(path.changes.some(({ to }) => to === "dead"));
  path.backend("a").isUntrusted = false;
  path.clock.advance(5000);
  assert.is(stateOf(path, "a"), "ready");
  assert.ok(sessions.length > before);
});

test("a stall of the proxy of 2 s is held against no backend (F11)", () => {
  const path = start();
  const before = path.changes.length;
  path.clock.stall(2000);
  path.clock.advance(5000);
  assert.is(path.changes.length, before);
});

test("four hours of silence: no upstream connection is closed, no verdict falls, and a watch is not cut", () => {
  const path = start();
  const watch = path.client().ask("GET", "/api/v1/pods?watch=1");
  path.settle();
  const before = path.changes.length;
  for (let minute = 0; minute < 240; minute += 1) path.clock.advance(60_000);
  assert.is(path.changes.length, before);
  assert.is(path.exchanges.size, 1);
  assert.is(watch.resetCode, undefined);
  const closed = path.entries.filter(
    (entry) => entry.kind === "upstream_connection.closed" && entry.reason !== "ended",
  );
  assert.equal(closed, []);
});

test("trouble with requests is no verdict, but makes it ask at once", () => {
  for (const fail of ["status", "reset"] as const) {
    const path = start();
    path.clock.advance(1000 - (path.clock.now() % 1000) - 200);
    path.client().ask("POST", "/api");
    path.settle();
    const [asked] = ["a", "b"].filter((name) => path.backend(name).asked.length > 0);
    const backend = path.backend(asked ?? "");
    backend.readyz = "failing";
    if (fail === "status") backend.last.answer(500);
    else backend.last.fail();
    path.clock.advance(20);
    assert.is(stateOf(path, asked ?? ""), "suspect", fail);
  }
});

test("a backend that is removed is asked no more", () => {
  const path = start();
  path.reconcile(["b"]);
  assert.equal([path.probers?.of("a"), path.probers?.of("b") === undefined], [undefined, false]);
});

test.run();
