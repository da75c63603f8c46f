import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Entry } from "../../../src/events/journal.ts";
import { incidentLimits } from "../../../src/ops/incidents/limits.ts";
import { PlayedJournal } from "../../support/incidents.ts";

const test = suite("ops/incidents/findings");

const caller = { client: "10.0.0.7", userAgent: "manager/v1" } as const;

/** For each kind: the entry that opens the incident, and the entry that ends it, if there is one. */
const rows: readonly { readonly kind: string; readonly opens: Entry; readonly ends?: Entry }[] = [
  {
    kind: "watch-hung a",
    opens: {
      kind: "watch.hung",
      ...caller,
      resource: "/pods",
      backend: "a",
      silentMs: 131_000,
      limitMs: 130_000,
    },
  },
  {
    kind: "watch-hung a",
    opens: {
      kind: "watches.ended",
      reason: "deadline_missed",
      from: "a",
      count: 2,
      resource: "/pods",
      version: "7",
    },
  },
  {
    kind: "watch-delayed a",
    opens: {
      kind: "watch.delayed",
      backend: "a",
      resource: "/secrets",
      delayMs: 2100,
      limitMs: 2000,
      othersMs: 12,
      resources: 1,
    },
  },
  {
    kind: "backend-api-unreachable a metrics.k8s.io",
    opens: {
      kind: "backend.api_unreachable",
      api: "metrics.k8s.io",
      failure: "refused",
      backend: "a",
      failed: 17,
      total: 20,
      peer: "b",
      peerFailed: 0,
      peerTotal: 31,
    },
    ends: { kind: "backend.api_reachable", backend: "a", api: "metrics.k8s.io" },
  },
  {
    kind: "backend-webhook-failing a vpol.example.com",
    opens: {
      kind: "backend.webhook_failing",
      webhook: "vpol.example.com",
      resource: "apps/deployments",
      failure: "unanswered",
      backend: "a",
      failed: 17,
      total: 20,
      peer: "b",
      peerFailed: 0,
      peerTotal: 31,
    },
  },
  {
    kind: "watch-replay-loop 10.0.0.7 manager/v1 /pods",
    opens: { kind: "watch.replay_loop", ...caller, resource: "/pods", version: "7", times: 5 },
  },
  {
    kind: "version-regression a /pods",
    opens: {
      kind: "event.version_regressed",
      ...caller,
      resource: "/pods",
      backend: "a",
      type: "DELETED",
      version: "7",
      seen: "9",
    },
  },
  {
    kind: "version-regression 10.0.0.7 manager/v1 /pods",
    opens: { kind: "stale_read_guard.bypassed", ...caller, resource: "/pods", seen: "9" },
  },
  {
    kind: "relist-storm",
    opens: {
      kind: "relist_storm.detected",
      relists: 40,
      limit: 40,
      withinMs: 10_000,
      resource: "/pods",
      clients: ["x"],
    },
  },
  {
    kind: "certificate-refused kube",
    opens: { kind: "certificate.refused", name: "kube", problem: "The key is not the certificate's" },
    ends: { kind: "certificate.loaded", name: "kube", notAfter: "2027" },
  },
  {
    kind: "certificate-expiring serving kube",
    opens: {
      kind: "certificate.expiring",
      purpose: "serving",
      name: "kube",
      notAfter: "2026",
      leftMs: 1,
      limitMs: 2,
    },
    ends: { kind: "certificate.renewed", purpose: "serving", name: "kube", notAfter: "2027" },
  },
  {
    kind: "certificate-expired serving kube",
    opens: {
      kind: "certificate.expiring",
      purpose: "serving",
      name: "kube",
      notAfter: "2026",
      leftMs: -1,
      limitMs: 0,
    },
    ends: { kind: "certificate.renewed", purpose: "serving", name: "kube", notAfter: "2027" },
  },
  {
    kind: "loopback-certificate-expiring backend-loopback a",
    opens: {
      kind: "certificate.expiring",
      purpose: "backend-loopback",
      name: "a",
      notAfter: "2026",
      leftMs: -9e8,
      limitMs: 0,
    },
    ends: { kind: "certificate.renewed", purpose: "backend-loopback", name: "a", notAfter: "" },
  },
  ...(["contested", "ghost", "unknown"] as const).map((verdict) => ({
    kind: `${{ contested: "lease-contested", ghost: "lease-ghost-holder", unknown: "lease-unknown-client" }[verdict]} leases n/x`,
    opens: {
      kind: "lease.suspect",
      ...caller,
      verdict,
      lease: "leases n/x",
      holder: "x",
      subject: "",
      was: "",
      detector: "turns",
      valueMs: 1,
      limitMs: 2,
      reason: "r",
      auditId: "id",
    } as const,
  })),
  {
    kind: "config-refused f",
    opens: { kind: "config.refused", file: "f", problems: ["1:1 unknown", "b"] },
    ends: { kind: "config.reloaded", file: "f", sha256: "", waiting: [] },
  },
  {
    kind: "discovery-failed dns",
    opens: { kind: "discovery.failed", from: "dns", reason: "SERVFAIL" },
    ends: { kind: "discovery.recovered", from: "dns" },
  },
  {
    kind: "listener-lost kube",
    opens: { kind: "listener.lost", listener: "kube", reason: "EADDRINUSE" },
    ends: { kind: "listener.opened", listener: "kube", address: "127.0.0.1:1" },
  },
  {
    kind: "overload",
    opens: { kind: "request.failed", code: "overload", origin: "proxy", message: "Too much", auditId: "id" },
  },
  { kind: "internal-error timer", opens: { kind: "internal.error", scope: "timer", message: "x" } },
];

for (const { kind, opens, ends } of rows)
  test(`${opens.kind} opens ${kind}`, () => {
    const played = new PlayedJournal();
    played.clock.advance(200_000);
    played.write(opens, opens);
    assert.equal(played.told, [`+ ${kind}`]);
    const { evidence, summary, startedAt, detectedAt } = played.only;
    assert.ok(evidence.length >= 2 && evidence.every(({ text }) => text !== ""), "a row each time");
    assert.ok(summary !== "" && startedAt <= detectedAt);
    if (ends === undefined) played.clock.advance(incidentLimits.quietMs);
    else played.write(ends);
    assert.equal(played.told, [`+ ${kind}`, `- ${kind}`]);
  });

test("a refused file is named once, where its first problem names it already", () => {
  const played = new PlayedJournal();
  played.write({ kind: "config.refused", file: "a.yaml", problems: ["a.yaml:3:1: is not YAML", "b"] });
  assert.is(played.only.summary, "a.yaml:3:1: is not YAML");
});

test("what is measured again and again has the latest summary", () => {
  const played = new PlayedJournal();
  const late = { kind: "watch.delayed", backend: "cp-2", resource: "/secrets", limitMs: 2000 } as const;
  played.write({ ...late, delayMs: 2100, othersMs: -1, resources: 1 });
  assert.is(played.only.summary, "cp-2 delivers secrets 2.1 s late");
  played.write({ ...late, delayMs: 4100, othersMs: 12, resources: 3 });
  assert.is(
    played.only.summary,
    "cp-2 delivers secrets 4.1 s late; 3 resources are late; other backends: 0.0 s",
  );
  const counts = { backend: "cp-2", failed: 17, total: 20, peer: "cp-1", peerFailed: 0, peerTotal: 31 };
  const grey = new PlayedJournal();
  grey.write({ kind: "backend.api_unreachable", api: "metrics.k8s.io", failure: "refused", ...counts });
  assert.is(grey.only.summary, "cp-2 cannot reach metrics.k8s.io (17 of 20 failed; cp-1: 0 of 31)");
});

test("a certificate that expires is one incident after the other", () => {
  const played = new PlayedJournal();
  const serving = {
    kind: "certificate.expiring",
    purpose: "serving",
    name: "kube",
    notAfter: "2026",
  } as const;
  played.write({ ...serving, leftMs: 86_400_000 * 6.5, limitMs: 86_400_000 * 7 });
  played.write({ ...serving, leftMs: 3_600_000, limitMs: 86_400_000 });
  assert.match(played.only.summary, "expires in 1.0 h");
  played.write({ ...serving, leftMs: -1, limitMs: 0 });
  assert.equal(played.told, [
    "+ certificate-expiring serving kube",
    "+ certificate-expired serving kube",
    "- certificate-expiring serving kube",
  ]);
});

test("the client that causes an incident is not one of those that it harms", () => {
  const loop = new PlayedJournal();
  loop.write({ kind: "watch.replay_loop", ...caller, resource: "/pods", version: "7", times: 5 });
  assert.equal([loop.only.affected.names, loop.only.causedBy.names], [[], ["10.0.0.7 manager/v1"]]);
  const stale = new PlayedJournal();
  stale.write({ kind: "stale_read_guard.bypassed", ...caller, resource: "/pods", seen: "9" });
  assert.equal([stale.only.affected.names, stale.only.causedBy.names], [["10.0.0.7 manager/v1"], []]);
});

test("what has no incident opens none", () => {
  const played = new PlayedJournal();
  played.write(
    { kind: "watches.ended", reason: "initial_events", from: "a", count: 2, resource: "/pods", version: "7" },
    { kind: "request.failed", code: "bad-request", origin: "client", message: "no", auditId: "id" },
    { kind: "upstream_connection.opened", backend: "a", connection: "1" },
    { kind: "drain.started" },
  );
  assert.equal(played.told, []);
});

test("an etcd history that no client can check for ten minutes: the incident says how to accept it", () => {
  const played = new PlayedJournal();
  played.write({ kind: "history.unchecked", backend: "cp-2", uncheckedMs: 600_400 });
  const { kind, subject, summary } = played.only;
  assert.equal([kind, subject], ["backend-dead", "cp-2"]);
  assert.is(
    summary,
    "No client is left that may list, so the etcd history of cp-2 is unchecked for 10 min. To accept it, remove cp-2 from the configuration, reload, and add it again",
  );
});

test.run();
