import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Fold } from "../../../src/ops/incidents/fold.ts";
import { incidentLimits } from "../../../src/ops/incidents/limits.ts";
import { IncidentStore } from "../../../src/ops/incidents/store.ts";
import { changed } from "../../support/incidents.ts";

const test = suite("ops/incidents/fold");

test("it says when it has something to do: a doubt that lasts, an incident that calms", () => {
  const store = new IncidentStore({ opened() {}, ended() {} });
  const fold = new Fold(store);
  assert.is(fold.dueAt, Number.POSITIVE_INFINITY);
  fold.take(changed("a", "ready", "suspect"), 100);
  assert.is(fold.dueAt, 100 + incidentLimits.unprovenMs);
  fold.take({ kind: "internal.error", scope: "stream", message: "x" }, 200);
  fold.tick(100 + incidentLimits.unprovenMs);
  assert.equal(
    store.active.map(({ kind }) => kind),
    ["internal-error", "backend-blackholed", "all-backends-down"],
  );
  assert.is(fold.dueAt, 200 + incidentLimits.quietMs);
  fold.tick(fold.dueAt);
  assert.is(fold.dueAt, Number.POSITIVE_INFINITY);
});

test("a tick at dueAt ends the calm incident, even if the sum of two times is rounded", () => {
  const store = new IncidentStore({ opened() {}, ended() {} });
  const fold = new Fold(store);
  const seenAt = 1_941_974.84;
  assert.ok(seenAt + incidentLimits.quietMs - seenAt < incidentLimits.quietMs, "the sum is not rounded down");
  fold.take({ kind: "internal.error", scope: "stream", message: "x" }, seenAt);
  fold.tick(fold.dueAt);
  assert.is(fold.dueAt, Number.POSITIVE_INFINITY);
});

test("an answer from the past that comes again is an incident of its client", () => {
  const store = new IncidentStore({ opened() {}, ended() {} });
  const fold = new Fold(store);
  const outdated = {
    kind: "response.stale",
    client: "c",
    userAgent: "u",
    resource: "/pods",
    backend: "a",
    version: "1",
    seen: "2",
  } as const;
  fold.take(outdated, 0);
  fold.take(outdated, 60_000);
  assert.equal(
    store.active.map(({ kind, affected }) => [kind, affected.names]),
    [["version-regression", ["c u"]]],
  );
});

test("what is wrong in two clusters is two things, and each is over by itself", () => {
  const store = new IncidentStore({ opened() {}, ended() {} });
  const fold = new Fold(store);
  const of = (cluster: string) => ({ cluster });
  const subjects = (): string[] => store.active.map(({ kind, subject }) => `${kind} ${subject}`);
  const failed = { kind: "discovery.failed", from: "dns", reason: "ENOTFOUND" } as const;
  fold.take({ ...failed, ...of("eu") }, 0);
  fold.take({ ...failed, ...of("us") }, 0);
  assert.equal(subjects(), ["discovery-failed eu: dns", "discovery-failed us: dns"]);
  assert.match(store.active[0]?.summary ?? "", /^eu: Discovery/);
  fold.take({ kind: "discovery.recovered", from: "dns", ...of("eu") }, 1);
  assert.equal(subjects(), ["discovery-failed us: dns"]);
  fold.take({ kind: "certificate.refused", name: "us/backend-ca", problem: "p", ...of("us") }, 2);
  fold.take(
    {
      kind: "relist_storm.detected",
      relists: 9,
      limit: 5,
      withinMs: 1,
      resource: "/pods",
      clients: [],
      ...of("us"),
    },
    2,
  );
  assert.equal(subjects(), [
    "discovery-failed us: dns",
    "certificate-refused us/backend-ca",
    "relist-storm us",
  ]);
  fold.take({ kind: "cluster.removed", ...of("us") }, 3);
  assert.equal(subjects(), []);
});

test("all backends of one cluster are down whatever those of another are", () => {
  const store = new IncidentStore({ opened() {}, ended() {} });
  const fold = new Fold(store);
  fold.take({ ...changed("eu/a", "unknown", "ready"), cluster: "eu" }, 0);
  fold.take({ ...changed("us/a", "ready", "suspect"), cluster: "us" }, 100);
  fold.tick(100 + incidentLimits.unprovenMs);
  const all = store.active.filter(({ kind }) => kind === "all-backends-down");
  assert.equal(
    all.map(({ subject, summary }) => [subject, summary]),
    [["us", "us: 0 of 1 backends are available"]],
  );
  fold.take({ kind: "backend.removed", backend: "us/a", cluster: "us" }, 200);
  assert.equal(store.active, []);
});

test("a client that was led back in one cluster is not led back twice by another", () => {
  const store = new IncidentStore({ opened() {}, ended() {} });
  const fold = new Fold(store);
  const outdated = { kind: "response.stale", client: "c", userAgent: "u", resource: "/pods" } as const;
  for (const cluster of ["eu", "us"])
    fold.take({ ...outdated, backend: `${cluster}/a`, version: "1", seen: "2", cluster }, 0);
  assert.equal(store.active, []);
});

test.run();
