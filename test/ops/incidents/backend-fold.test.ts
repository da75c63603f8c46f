import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Incident } from "../../../src/ops/incidents/incident.ts";
import { incidentLimits } from "../../../src/ops/incidents/limits.ts";
import { changed, met, PlayedJournal } from "../../support/incidents.ts";

const test = suite("ops/incidents/backend-fold");

/** Creates a journal in which the backends a and b are ready. */
function scene(): PlayedJournal {
  const played = new PlayedJournal();
  played.write(changed("a", "unknown", "ready"), changed("b", "unknown", "ready"));
  return played;
}

const stalled = {
  kind: "cache.stalled",
  backend: "a",
  resource: "/pods",
  version: "7",
  peersVersion: "9",
  behindMs: 10_500,
  detector: "bookmark",
  watches: 3,
} as const;

const unnotified = {
  kind: "cache.progress_delayed",
  backend: "a",
  resource: "/pods",
  version: "7",
  etcdVersion: "90",
  lateMs: 7010,
} as const;

test("a black hole is told by name when its doubt has lasted, with what proves it and what it cost", () => {
  const played = scene();
  played.clock.advance(10_000);
  played.write(changed("a", "ready", "suspect"));
  played.write({
    kind: "watches.moved",
    reason: "suspect",
    from: "a",
    to: "b",
    count: 131,
    slowestMs: 702,
  });
  played.clock.advance(1000);
  assert.equal(played.told, []);
  played.write(met("a", "silence"));
  const incident = played.only;
  assert.equal([incident.kind, incident.backend], ["backend-blackholed", "a"]);
  assert.is(incident.detectedAt - incident.startedAt, 1600);
  assert.equal(
    incident.evidence.map(({ detector, value, threshold }) => [detector, value, threshold]),
    [
      ["ping", 600, 500],
      ["dial", 1000, 0],
    ],
  );
  assert.equal([incident.impact.watchesMoved, incident.impact.slowestMoveMs], [131, 702]);
});

test("a kernel that takes the socket says that only the process is frozen; one that refuses, that it is dead", () => {
  for (const [what, reached, kind] of [
    ["silence", "tcp", "backend-frozen"],
    ["refusal", "", "backend-dead"],
    ["untrusted", "tls", "backend-untrusted"],
  ] as const) {
    const played = scene();
    played.write(changed("a", "ready", "suspect"), met("a", what, reached));
    played.write(changed("a", "suspect", "dead", { reason: "the last session was lost" }));
    assert.is(played.only.kind, kind);
  }
});

test("a doubt that passes is no incident, and leaves nothing behind", () => {
  const played = scene();
  played.write(changed("a", "ready", "suspect"));
  played.clock.advance(incidentLimits.unprovenMs - 1);
  played.write(changed("a", "suspect", "ready"));
  played.clock.advance(100_000);
  assert.equal(played.told, []);
});

test("silence on old sockets alone is an incident only when it lasts", () => {
  const played = scene();
  played.write(changed("a", "ready", "suspect"), met("a", "answer", "tls"));
  played.clock.advance(incidentLimits.unprovenMs);
  assert.is(played.only.kind, "backend-blackholed");
});

test("one that says it is not ready is told as that, and over when it is", () => {
  const played = scene();
  played.write(
    changed("a", "ready", "suspect", { detector: "readyz", reason: "/readyz: status 500, failing: etcd" }),
  );
  played.clock.advance(incidentLimits.unreadyMs);
  assert.is(played.only.kind, "backend-unready");
  played.write(changed("a", "suspect", "ready", { reason: "/readyz: ok" }));
  assert.equal(played.told, ["+ backend-unready a", "- backend-unready a"]);
});

test("an announced restart is none, unless it lasts", () => {
  const played = scene();
  played.write(changed("a", "ready", "draining", { detector: "goaway" }));
  played.write(changed("a", "draining", "dead"), met("a", "refusal"));
  played.clock.advance(incidentLimits.restartMs - 1);
  assert.equal(played.told, []);
  played.clock.advance(1);
  assert.equal(played.told, ["+ backend-dead a"]);
  played.write(changed("a", "dead", "ready"));
  assert.equal(played.told, ["+ backend-dead a", "- backend-dead a"]);
});

test("with the last of them down no backend can be asked, and that is reported once more", () => {
  const played = scene();
  for (const name of ["a", "b"])
    played.write(changed(name, "ready", "suspect"), changed(name, "suspect", "dead"));
  assert.equal(played.told, ["+ backend-dead a", "+ backend-dead b", "+ all-backends-down"]);
  played.write(changed("b", "dead", "ready"));
  assert.equal(played.told.slice(3), ["- backend-dead b", "- all-backends-down"]);
});

test("a backend without a verdict yet is not down, and one that is down has not outnumbered it", () => {
  const played = new PlayedJournal();
  played.write({ kind: "backend.added", backend: "a" }, { kind: "backend.added", backend: "b" });
  played.write(changed("a", "unknown", "dead"));
  played.clock.advance(60_000);
  assert.equal(played.told, ["+ backend-dead a"]);
  played.write(changed("b", "unknown", "dead"));
  assert.equal(played.told.slice(1), ["+ backend-dead b", "+ all-backends-down"]);
  assert.is(played.active.at(-1)?.summary ?? "", "0 of 2 backends are available");
});

test("a newcomer ends the trouble of all backends only when it can be asked", () => {
  const played = scene();
  for (const name of ["a", "b"]) played.write(changed(name, "ready", "dead"));
  played.write({ kind: "backend.added", backend: "c" });
  const isTold = (): boolean => played.active.some(({ kind }) => kind === "all-backends-down");
  assert.ok(isTold());
  played.write(changed("c", "unknown", "ready"));
  assert.not.ok(isTold());
});

test("three falls in two minutes are flapping, told by verdicts or by new sockets alone", () => {
  const played = scene();
  for (let fall = 0; fall < incidentLimits.flaps; fall += 1) {
    played.write(changed("a", "ready", "suspect"));
    played.clock.advance(300);
    if (fall < 2) played.write(changed("a", "suspect", "ready"));
  }
  assert.equal(played.told, ["+ backend-flapping a"]);
  // The backend now stays suspect, so only new connections show whether it still comes and goes.
  const { lastSeenAt } = played.only;
  played.clock.advance(1000);
  played.write(met("a", "answer", "tls"), met("a", "refusal"));
  const flapping = (): Incident | undefined => played.incidents.store.find("backend-flapping", "a");
  assert.ok((flapping()?.lastSeenAt ?? 0) > lastSeenAt);
  const seenAt = flapping()?.lastSeenAt;
  for (let probes = 0; probes < 20; probes += 1) {
    played.clock.advance(300);
    played.write(met("a", "refusal"));
  }
  assert.is(
    flapping()?.lastSeenAt,
    seenAt,
    "probes of a backend that stays dead are no evidence of flapping",
  );
  played.write(changed("a", "suspect", "ready"));
  played.clock.advance(incidentLimits.flappingMs);
  assert.is(played.active.length, 0);
});

test("probes that a lossy network swallows now and then do not make it flap", () => {
  const played = scene();
  for (let times = 0; times < 10; times += 1) {
    played.write(met("a", "silence"), met("a", "answer", "tls"));
    played.clock.advance(5000);
  }
  assert.equal(played.told, []);
});

test("a cache that stands still is told, and over when all of its resources go on", () => {
  const played = scene();
  played.clock.advance(60_000);
  played.write(stalled, { ...stalled, resource: "/secrets" });
  assert.equal(played.told, ["+ backend-stale a"]);
  assert.is(played.only.startedAt, 60_000 - 10_500);
  played.write({ kind: "watches.moved", reason: "stale", from: "a", to: "b", count: 3, slowestMs: 40 });
  assert.is(played.only.impact.watchesMoved, 3);
  played.write({ kind: "cache.recovered", backend: "a", resource: "/pods", version: "9" });
  assert.is(played.active.length, 1);
  played.write({ kind: "cache.recovered", backend: "a", resource: "/secrets", version: "9" });
  assert.is(played.active.length, 0);
});

test("the affected clients are named: a tunnel that ended, a request that failed; none for evening the load", () => {
  const played = scene();
  played.write(changed("a", "ready", "suspect"), met("a", "refusal"), changed("a", "suspect", "dead"));
  const failed = {
    kind: "request.failed",
    code: "backend-lost",
    origin: "backend",
    message: "lost",
    auditId: "x",
  } as const;
  played.write(
    { ...failed, client: "10.0.0.7", userAgent: "kubectl/v1", backend: "a" },
    { ...failed, client: "10.0.0.8", userAgent: "kubectl/v1", backend: "b" },
    { kind: "tunnel.ended", client: "10.0.0.9", backend: "a", auditId: "y", reason: "backend_dead" },
    { kind: "watches.moved", reason: "rebalance", from: "a", to: "b", count: 9, slowestMs: 1 },
    { kind: "watches.ended", reason: "not_found", from: "a", count: 3, resource: "/pods", version: "7" },
  );
  const { impact, affected } = played.only;
  assert.equal(
    [impact.requestsFailed, impact.tunnelsEnded, impact.watchesMoved, impact.watchesEnded],
    [1, 1, 0, 0],
    "neither evening nor a CRD that was deleted",
  );
  assert.equal(affected.names, ["10.0.0.7 kubectl/v1", "10.0.0.9"]);
});

test("a cache that etcd does not notify is told, and over when all of them have been, or the backend is dead", () => {
  const played = scene();
  played.clock.advance(60_000);
  played.write(unnotified, { ...unnotified, resource: "/secrets" });
  assert.equal(played.told, ["+ cache-progress-delayed a"]);
  assert.is(played.only.startedAt, 60_000 - 7010);
  assert.match(
    played.only.summary,
    /default: every 10 min.*7 s after etcd was at 90 the cache of \/pods was at 7/,
  );
  const notified = { kind: "cache.progress_restored", backend: "a", version: "95", lateMs: 540_000 } as const;
  played.write({ ...notified, resource: "/pods" });
  assert.is(played.active.length, 1);
  played.write({ ...notified, resource: "/secrets" });
  assert.is(played.active.length, 0);
  played.write(unnotified, changed("a", "ready", "suspect"), changed("a", "suspect", "dead"));
  assert.equal(
    played.active.map(({ kind }) => kind).filter((kind) => kind === "cache-progress-delayed"),
    [],
  );
});

test("a backend that is configured no more takes its incidents along", () => {
  const played = scene();
  played.write(changed("a", "ready", "suspect"), changed("a", "suspect", "dead"), stalled);
  played.write({ kind: "backend.removed", backend: "a" });
  assert.is(played.active.length, 0);
});

test("more backends than any configuration has are not followed", () => {
  const played = new PlayedJournal();
  for (let index = 0; index <= incidentLimits.incidentBackends; index += 1)
    played.write(changed(`n-${index}`, "unknown", "dead"));
  const dead = played.active.filter(({ kind }) => kind === "backend-dead");
  assert.is(dead.length, incidentLimits.incidentBackends);
});

test.run();
