import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Entry } from "../../../../src/events/journal.ts";
import { Journal } from "../../../../src/events/journal.ts";
import type { Sample } from "../../../../src/ops/admin/metrics/exposition.ts";
import { isCounter } from "../../../../src/ops/admin/metrics/exposition.ts";
import { histograms } from "../../../../src/ops/admin/metrics/histogram-declarations.ts";
import type { BackendStatus, LiveCluster, Process } from "../../../../src/ops/admin/metrics/metric.ts";
import { metrics } from "../../../../src/ops/admin/metrics/metric-declarations.ts";
import { Metrics } from "../../../../src/ops/admin/metrics/registry.ts";
import type { HedgeOutcome } from "../../../../src/watch/session/watch-lives.ts";
import { manualClock } from "../../../support/clock.ts";
import { clusterWith, processWith } from "../../../support/metrics.ts";

const test = suite("ops/admin/metrics/metric-declarations");

function backend(
  name: string,
  state = "ready",
  facts: Partial<BackendStatus> = {},
): Partial<LiveCluster["path"]> {
  const { connections = [] } = facts;
  const { path } = clusterWith();
  return {
    backends: { ...path.backends, views: [{ name, state }] },
    pools: {
      poolOf: () => ({
        shards: connections.map(({ trust, kind, open, streams }) => ({
          key: { trust, kind },
          connections: Array.from({ length: open }, (_, at) => ({ openCount: at === 0 ? streams : 0 })),
        })),
      }),
    },
    measurementsOf: () => ({
      version: "v1.36.1",
      watchLagMs: 1500,
      watchDelay: undefined,
      unreachableApis: [],
      pingP99Ms: 2,
      suspectMs: 1500,
      isDrained: false,
      shield: { cap: 0, waiting: 0, refused: 0 },
      pings: undefined,
      load: path.measurementsOf(name).load,
      probes: { ...path.measurementsOf(name).probes, answers: 3, failures: 1, lastMs: 12 },
    }),
  };
}

/** Writes the entries to the journal of a process. Returns the samples of one of its metrics. */
function rows(name: string, process: Partial<Process>, ...entries: readonly Entry[]): readonly Sample[] {
  const journal = new Journal(manualClock());
  const all = new Metrics(journal, processWith(process));
  for (const entry of entries) journal.write(entry);
  return all.read(name);
}

/** Returns the samples of one metric of a process with one cluster. */
function of(name: string, path: Partial<LiveCluster["path"]>): readonly Sample[] {
  return rows(name, { clusters: () => [clusterWith({ path })] });
}

test("names follow Prometheus: what counts journal entries ends in _total, and each is declared once", () => {
  const all = [...metrics, ...histograms];
  for (const { name } of all) assert.match(name, /^[a-z_]+$/);
  for (const metric of metrics) if ("counted" in metric) assert.ok(isCounter(metric), metric.name);
  assert.is(new Set(all.map(({ name }) => name)).size, all.length);
});

test("a backend has one row for each state, and one of them is 1", () => {
  assert.equal(of("backend_state", backend("cp-1", "dead")), [
    [["cp-1", "unknown"], 0],
    [["cp-1", "ready"], 0],
    [["cp-1", "suspect"], 0],
    [["cp-1", "dead"], 1],
    [["cp-1", "draining"], 0],
  ]);
  assert.equal(of("backend_ready", backend("cp-1")), [[["cp-1"], 1]]);
  assert.equal(of("backend_ready", backend("cp-1", "dead")), [[["cp-1"], 0]]);
});

test("what the detectors measured is in seconds", () => {
  const path = backend("cp-1");
  assert.equal(of("backend_suspect_seconds_total", path), [[["cp-1"], 1.5]]);
  assert.equal(of("backend_ping_rtt_seconds", path), [[["cp-1", "0.99"], 0.002]]);
  assert.equal(of("backend_last_probe_duration_seconds", path), [[["cp-1"], 0.012]]);
  assert.equal(of("backend_probes_total", path), [
    [["cp-1", "ok"], 3],
    [["cp-1", "failed"], 1],
  ]);
});

test("connections and their streams are counted by backend, trust class and kind", () => {
  const connections = [{ trust: "proven", kind: "plain", open: 2, streams: 7 }];
  const path = backend("cp-1", "ready", { connections });
  assert.equal(of("upstream_connections", path), [[["cp-1", "proven", "plain"], 2]]);
  assert.equal(of("upstream_streams", path), [[["cp-1", "proven", "plain"], 7]]);
});

test("discovery is shown where there is one", () => {
  const { backends } = clusterWith();
  const record = { lastSuccessAtMs: 2000, failures: 1, found: 3 };
  const clusters = (): readonly LiveCluster[] => [clusterWith({ backends: { ...backends, record } })];
  assert.equal(rows("discovery_last_success_timestamp_seconds", { clusters }), [[[""], 2]]);
  assert.equal(rows("discovery_failures_total", { clusters }), [[[""], 1]]);
  assert.equal(rows("discovery_backends", { clusters }), [[[""], 3]]);
  assert.equal(rows("discovery_backends", {}), []);
});

test("verbs and codes come from closed sets, in the apiserver's words (A54)", () => {
  const count = (verb: string, code: number, name = "") => ({ verb, code, backend: name, count: 1 });
  const { exchanges } = clusterWith().path;
  const counts = [count("create", 201), count("HEAD", 200), count("x".repeat(9), 799), count("", 0)];
  assert.equal(of("requests_total", { exchanges: { ...exchanges, counts } }), [
    [["POST", "201", ""], 1],
    [["GET", "200", ""], 1],
    [["other", "other", ""], 1],
    [["other", "other", ""], 1],
  ]);
  const path = { exchanges: { ...exchanges, counts: [count("get", 200, "eu/a"), count("get", 503)] } };
  assert.equal(rows("requests_total", { clusters: () => [clusterWith({ label: "eu", path })] }), [
    [["GET", "200", "eu/a"], 1, "eu"],
    [["GET", "503", "eu/"], 1, "eu"],
  ]);
});

test("requests that were sent twice, and those that wait for a backend or for admission, are shown", () => {
  const hedges = {
    counts: { all: [{ backend: "cp-1", key: "hedge", count: 3 }] },
    wins: { first: 2, hedge: 1 },
  };
  assert.equal(of("request_hedges_total", { hedges }), [[["cp-1"], 3]]);
  assert.equal(of("request_hedge_wins_total", { hedges }), [
    [["first"], 2],
    [["hedge"], 1],
  ]);
  assert.equal(of("requests_pending", { pending: { size: 2 }, admission: { waiting: 3 } }), [[[], 5]]);
});

test("watches are shown by their state, their moves and ends by the reason", () => {
  const { exchanges, migrations, caches } = clusterWith().path;
  const watched = {
    events: new Map([["cp-1", 3]]),
    bytes: 4,
    versionRegressions: 5,
    states: new Map([["live", 2]]),
  };
  const ended = (key: HedgeOutcome, count: number) => ({ backend: "cp-1", key, count });
  const path = {
    exchanges: { ...exchanges, watched },
    migrations: {
      ...migrations,
      moves: new Map([["suspect", 1] as const]),
      ends: new Map([["no_progress", 2] as const]),
      waiting: 3,
      lives: { hedges: { all: [ended("first", 4), ended("hedge", 1), ended("neither", 0)] } },
      refreshes: 5,
      sentinels: 7,
      stalls: 9,
    },
    detectors: { sentinels: { count: 6 } },
    caches: { ...caches, watched: [{ backend: "cp-1", resource: "/pods", watches: 8 }] },
    refresher: { progressRequests: { answered: 3, refused: 2, unanswered: 1 } },
    origins: { counts: { custom: 3, aggregated: 2, unknown: 1 } },
    staleReadGuard: { counts: { outdated: 6, demanded: 8, refused: 7 } },
  };
  const expected: Readonly<Record<string, readonly (readonly [readonly string[], number])[]>> = {
    watches: [[["live"], 2]],
    backend_watches: [[["cp-1", "/pods"], 8]],
    watch_events_total: [[["cp-1"], 3]],
    watch_event_bytes_total: [[[], 4]],
    watch_version_regressions_total: [[[], 5]],
    watch_moves_total: [[["suspect"], 1]],
    watch_ends_total: [[["no_progress"], 2]],
    watches_parked: [[[], 3]],
    watch_hedges_total: [
      [["cp-1", "first"], 4],
      [["cp-1", "hedge"], 1],
      [["cp-1", "neither"], 0],
    ],
    watch_bookmark_refreshes_total: [[[], 5]],
    watch_sentinels: [[[], 6]],
    watch_sentinel_streams_total: [[[], 7]],
    stalled_caches: [[[], 9]],
    stale_responses_total: [[[], 6]],
    watch_progress_requests_total: [
      [["answered"], 3],
      [["refused"], 2],
      [["unanswered"], 1],
    ],
    watched_apis: [
      [["custom"], 3],
      [["aggregated"], 2],
      [["unknown"], 1],
    ],
    stale_read_guard_requests_total: [
      [["rewritten"], 8],
      [["refused"], 7],
    ],
  };
  for (const [name, wanted] of Object.entries(expected)) assert.equal(of(name, path), wanted, name);
});

test("incidents are counted, and each kind without an active one is 0, so that its alert resolves", () => {
  const incidents = {
    counts: [{ kind: "backend-dead", backend: "a", count: 2 }],
    active: [{ kind: "backend-dead", backend: "b" }],
  } as const;
  assert.equal(rows("incidents_total", { incidents }), [[["backend-dead", "a"], 2]]);
  const active = rows("incident_active", { incidents });
  assert.equal(active.at(-1), [["backend-dead", "b"], 1]);
  assert.ok(active.some((row) => JSON.stringify(row) === '[["overload",""],0]'));
});

test("leases are shown with their holder and the address of the last renewal; a verdict only where it is suspect", () => {
  const clock = manualClock();
  const lease = {
    name: { resource: "leases", namespace: "n", name: "l" },
    holder: "h",
    renewedAt: clock.now(),
    renewers: [{ caller: { address: "10.0.0.7" } }],
    verdictAt: () => ({ verdict: "ghost" }),
  } as const;
  const all = [
    lease,
    { ...lease, name: { ...lease.name, name: "well" }, verdictAt: () => undefined },
    { ...lease, name: { ...lease.name, namespace: "kube-node-lease" } },
  ];
  const { ledgerTap } = clusterWith().path;
  const clusters = (): readonly LiveCluster[] => [
    clusterWith({ path: { ledgerTap: { ...ledgerTap, leases: { all } } } }),
  ];
  const shown = { clusters, clock };
  assert.equal(rows("lease_holder_info", shown), [
    [["n", "l", "h", "10.0.0.7"], 1],
    [["n", "well", "h", "10.0.0.7"], 1],
  ]);
  assert.equal(rows("lease_last_renew_timestamp_seconds", shown)[0], [["n", "l"], clock.wall() / 1000]);
  assert.equal(rows("lease_suspect", shown), [[["n", "l", "ghost"], 1]]);
});

test("clients are counted by program", () => {
  const { ledgerTap } = clusterWith().path;
  const path = {
    ledgerTap: {
      ...ledgerTap,
      ledger: { size: 7, programs: new Map([["kubelet", { counts: [["get", 9]] as const }]]) },
    },
  };
  assert.equal(
    [of("clients", path), of("client_requests_total", path)],
    [[[[], 7]], [[["kubelet", "GET"], 9]]],
  );
});

test("passthrough: connections by backend, bytes by direction, ends by reason, refusals by origin", () => {
  const passthrough = { counts: new Map([["cp-1", 3]]), bytes: { sent: 5, received: 7 } };
  const clusters = (): readonly LiveCluster[] => [clusterWith({ passthrough })];
  assert.equal(rows("passthrough_connections", { clusters }), [[["cp-1"], 3]]);
  assert.equal(rows("passthrough_bytes_total", { clusters }), [
    [["sent"], 5],
    [["received"], 7],
  ]);
  const who = { client: "10.0.0.9", listener: "nodes" };
  const ended = (reason: string): Entry => ({
    kind: "passthrough.ended",
    ...who,
    backend: "cp-1",
    serverName: "",
    durationMs: 1,
    sent: 1,
    received: 1,
    reason,
  });
  assert.equal(
    rows("passthrough_connections_ended_total", {}, ended("ended"), ended("ended"), ended("backend_dead")),
    [
      [["cp-1", "ended"], 2],
      [["cp-1", "backend_dead"], 1],
    ],
  );
  const refused = {
    kind: "passthrough.refused",
    ...who,
    code: "no-backend",
    origin: "proxy",
    message: "x",
  } as const;
  assert.equal(rows("passthrough_connections_refused_total", {}, refused), [[["no-backend", "proxy"], 1]]);
});

test("certificates expire at a time in seconds", () => {
  const certificates = () => [{ purpose: "serving", name: "kube", notAfterMs: 1500 }];
  assert.equal(rows("certificate_expiry_timestamp_seconds", { certificates }), [[["serving", "kube"], 1.5]]);
});

test("what the journal counts is counted by its labels", () => {
  const stall = {
    backend: "cp-1",
    resource: "/pods",
    version: "7",
    peersVersion: "9",
    behindMs: 1,
    watches: 1,
  };
  const changed = { detector: "ping", valueMs: 0, limitMs: 0, reason: "no answer" };
  const entries: readonly Entry[] = [
    { kind: "backend.changed", backend: "cp-1", from: "ready", to: "dead", ...changed },
    { kind: "upstream_connection.closed", backend: "cp-1", connection: "1", reason: "goaway" },
    { kind: "upstream_connection.closed", backend: "cp-1", connection: "2", reason: "goaway" },
    { kind: "certificate.refused", name: "kube", problem: "empty" },
    { kind: "certificate.loaded", name: "kube", notAfter: "" },
    { kind: "config.reloaded", file: "a.yaml", sha256: "", waiting: [] },
    { kind: "config.refused", file: "a.yaml", problems: [] },
    { kind: "internal.error", scope: "stream", message: "x" },
    { kind: "downstream_connection.refused", client: "10.0.0.9", reason: "PING of a wrong size" },
    { kind: "request.failed", code: "overload", origin: "proxy", message: "x", auditId: "" },
    { kind: "request.refused", client: "10.0.0.9", reason: "two Host fields" },
    { kind: "drain.started" },
    { kind: "cache.stalled", detector: "watch", ...stall },
    {
      kind: "watch.replay_loop",
      client: "10.0.0.9",
      userAgent: "x",
      resource: "/pods",
      version: "7",
      times: 5,
    },
  ];
  const expected: Readonly<Record<string, readonly Sample[]>> = {
    backend_state_transitions_total: [[["cp-1", "ready", "dead"], 1]],
    upstream_connections_closed_total: [[["cp-1"], 2]],
    certificate_reloads_total: [
      [["kube", "rejected"], 1],
      [["kube", "ok"], 1],
    ],
    config_reloads_total: [
      [["ok"], 1],
      [["rejected"], 1],
    ],
    internal_errors_total: [[["stream"], 1]],
    downstream_connections_refused_total: [[["PING of a wrong size"], 1]],
    requests_refused_total: [[["two Host fields"], 1]],
    request_failures_total: [[["overload", "proxy"], 1]],
    cache_stalls_total: [[["cp-1", "watch"], 1]],
    watch_replay_loops_total: [[["/pods"], 1]],
  };
  for (const [name, wanted] of Object.entries(expected))
    assert.equal(rows(name, {}, ...entries), wanted, name);
});

test.run();
