import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Histogram, requestBounds } from "../../../../src/base/histogram.ts";
import { limits } from "../../../../src/base/limits.ts";
import { Journal } from "../../../../src/events/journal.ts";
import { Field } from "../../../../src/h2/core/field.ts";
import { backendStates } from "../../../../src/health/backend.ts";
import { histograms } from "../../../../src/ops/admin/metrics/histogram-declarations.ts";
import type { LiveCluster, Process } from "../../../../src/ops/admin/metrics/metric.ts";
import { metrics } from "../../../../src/ops/admin/metrics/metric-declarations.ts";
import { Metrics } from "../../../../src/ops/admin/metrics/registry.ts";
import { relayEnds } from "../../../../src/proxy/tunnel/tcp-relay.ts";
import { trustClasses } from "../../../../src/upstream/identity/trust.ts";
import { connectionKinds } from "../../../../src/upstream/pool/pool-key.ts";
import { hedgeOutcomes } from "../../../../src/watch/session/watch-lives.ts";
import { manualClock } from "../../../support/clock.ts";
import { clusterWith, processWith } from "../../../support/metrics.ts";
import { bearer, PlayedPath } from "../../../support/path.ts";

const test = suite("ops/admin/metrics/registry");

function seriesIn(text: string): string[] {
  return text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
}

/**
 * Returns a process that has `count` rows of each kind, each row with different labels, and `backendCount` backends.
 * This is as much as hostile clients can create. With several `clusters`, all of them have the same rows.
 */
function flood(count: number, backendCount = count, clusters: readonly string[] = [""]): Process {
  const names = Array.from({ length: count }, (_, index) => `\n"\\{x="${index}`);
  const { backends, exchanges, caches } = clusterWith().path;
  const lease = {
    holder: "h",
    renewedAt: 0,
    renewers: [],
    verdictAt: () => ({ verdict: "ghost" }),
  };
  const shards = names
    .slice(0, 9)
    .map((kind) => ({ key: { trust: kind, kind }, connections: [{ openCount: 1 }] }));
  const cluster = clusterWith({
    passthrough: { counts: new Map(names.map((name) => [name, 1])), bytes: { sent: 1, received: 1 } },
    path: {
      backends: {
        ...backends,
        views: names.slice(0, backendCount).map((name) => ({ name, state: "ready" })),
      },
      pools: { poolOf: () => ({ shards }) },
      hedges: {
        counts: { all: names.map((backend) => ({ backend, key: "hedge", count: 1 })) },
        wins: { first: 1, hedge: 1 },
      },
      caches: { ...caches, watched: names.map((name) => ({ backend: name, resource: name, watches: 1 })) },
      exchanges: {
        ...exchanges,
        watched: { ...exchanges.watched, events: new Map(names.map((name) => [name, 1])) },
        counts: names.map((backend, index) => ({ verb: backend, code: index % 700, backend, count: 1 })),
        durations: new Map(names.map((verb) => [verb, new Histogram(requestBounds)])),
      },
      ledgerTap: {
        ledger: {
          size: count,
          programs: new Map(names.map((name) => [name, { counts: [["get", 1]] as const }])),
        },
        leases: {
          all: names.map((name) => ({ ...lease, name: { resource: "leases", namespace: name, name } })),
        },
      },
    },
  });
  return processWith({
    clusters: () => clusters.map((label) => ({ ...cluster, label })),
    certificates: () => names.map((name) => ({ purpose: name, name, notAfterMs: 1 })),
    incidents: {
      counts: names.map((backend) => ({ kind: backend, backend, count: 1 })),
      active: names.map((backend) => ({ kind: backend, backend })),
    },
  });
}

const scraped = (process: Partial<Process>): Promise<string> =>
  new Metrics(new Journal(manualClock()), processWith(process)).text();

test("a scrape shows the fields as they are now, and Node's own", async () => {
  const { exchanges } = clusterWith().path;
  let clusters: readonly LiveCluster[] = [];
  const all = new Metrics(new Journal(manualClock()), processWith({ clusters: () => clusters }));
  const counts = [{ verb: "list", code: 200, backend: "cp-1", count: 7 }];
  const watched = { ...exchanges.watched, events: new Map([["cp-1", 3]]) };
  const active = (kind: string): number => (kind === "watch" ? 2 : 0);
  clusters = [clusterWith({ path: { exchanges: { ...exchanges, counts, watched, active } } })];
  const lines = seriesIn(await all.text());
  for (const line of [
    'watchkeeper_requests_total{verb="LIST",code="200",backend="cp-1"} 7',
    'watchkeeper_watch_events_total{backend="cp-1"} 3',
    'watchkeeper_requests_active{kind="watch"} 2',
    "watchkeeper_config_last_reload_success_timestamp_seconds 1800000000",
    `watchkeeper_build_info{version="0.1.0",node="${process.versions.node}"} 1`,
  ])
    assert.ok(lines.includes(line), line);
  assert.ok(lines.some((line) => line.startsWith("process_resident_memory_bytes ")));
  assert.match(all.contentType, "text/plain; version=0.0.4");
});

test("a scrape shows what the path has done", async () => {
  const path = new PlayedPath(["a"]);
  const all = new Metrics(
    path.journal,
    processWith({ clusters: () => [{ ...clusterWith(), path }], clock: path.clock }),
  );
  const client = path.client();
  client.ask("GET", "/api/v1/pods", [bearer("t")]);
  path.settle();
  path.backend("a").last.answer(200, "[]");
  path.settle();
  client.ask("GET", "/api/v1/pods?watch=1", [bearer("t")]);
  path.settle();
  const watch = path.backend("a").last;
  watch.side?.sendHeaders(
    [new Field(":status", "200"), new Field("content-type", "application/json")],
    false,
  );
  watch.say('{"type":"ADDED","object":{}}\n');
  path.settle();
  assert.equal(all.read("watches"), [[["listing"], 1]]);
  client.downstream.receive(Buffer.from([0, 0, 7, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7]));
  path.settle();
  assert.equal(all.read("requests_total")[0], [["LIST", "200", "a"], 1]);
  assert.equal(all.read("watch_events_total"), [[["a"], 1]]);
  assert.equal(all.read("downstream_connections_refused_total"), [[["PING of a wrong size"], 1]]);
  assert.equal(all.read("backend_ready"), [[["a"], 1]]);
  assert.ok(all.read("upstream_connections").some(([[backend], open]) => backend === "a" && open > 0));
  assert.match(await all.text(), 'watchkeeper_request_duration_seconds_count{verb="LIST"} 1');
});

test("every row has as many values as its metric has labels", () => {
  const all = new Metrics(new Journal(manualClock()), flood(3));
  for (const { name, labels = [] } of metrics)
    for (const [values] of all.read(name)) assert.is(values.length, labels.length, name);
});

test("what is gone is gone from the next scrape", async () => {
  let names = ["cp-1"];
  const passthrough = () => ({
    counts: new Map(names.map((name) => [name, 1])),
    bytes: { sent: 0, received: 0 },
  });
  const clusters = (): readonly LiveCluster[] => [clusterWith({ passthrough: passthrough() })];
  const all = new Metrics(new Journal(manualClock()), processWith({ clusters }));
  assert.match(await all.text(), 'watchkeeper_passthrough_connections{backend="cp-1"} 1');
  names = [];
  assert.not.match(await all.text(), "watchkeeper_passthrough_connections{");
});

test("the journal is counted", async () => {
  const journal = new Journal(manualClock());
  const all = new Metrics(journal, processWith());
  journal.write({ kind: "internal.error", scope: "session", message: "x" });
  assert.match(await all.text(), 'watchkeeper_internal_errors_total{scope="session"} 1');
});

/** Returns a cluster that has answered `count` LIST requests. */
function answered(label: string, count: number): LiveCluster {
  const durations = new Map([["list", new Histogram(requestBounds)]]);
  for (let times = 0; times < count; times++) durations.get("list")?.observe(0.1);
  const { backends, exchanges, ledgerTap } = clusterWith().path;
  const counts = [{ verb: "list", code: 200, backend: `${label}/a`, count }];
  return clusterWith({
    label,
    passthrough: { counts: new Map([[`${label}/a`, 2]]), bytes: { sent: 3, received: 4 } },
    path: {
      exchanges: { ...exchanges, counts, durations, active: () => 1 },
      backends: { ...backends, views: [{ name: `${label}/a`, state: "ready" }] },
      ledgerTap: { ...ledgerTap, ledger: { size: 1, programs: new Map() } },
    },
  });
}

test("each of several clusters has series of its own, with the label cluster", async () => {
  const clusters = [answered("eu", 2), answered("us", 3)];
  const all = new Metrics(new Journal(manualClock()), processWith({ clusters: () => clusters }));
  assert.equal(all.read("requests_total"), [
    [["LIST", "200", "eu/a"], 2, "eu"],
    [["LIST", "200", "us/a"], 3, "us"],
  ]);
  const text = await all.text();
  for (const line of [
    'watchkeeper_passthrough_connections{backend="eu/a",cluster="eu"} 2',
    'watchkeeper_passthrough_bytes_total{direction="sent",cluster="us"} 3',
    'watchkeeper_clients{cluster="us"} 1',
    'watchkeeper_request_duration_seconds_count{verb="LIST",cluster="eu"} 2',
    'watchkeeper_request_duration_seconds_count{verb="LIST",cluster="us"} 3',
  ])
    assert.match(text, `${line}\n`);
});

test("no series of a backend, a watch or a request is shared by clusters whose backends have the same names", async () => {
  const of = async (clusters: readonly string[]): Promise<readonly string[]> =>
    seriesIn(await scraped(flood(3, 3, clusters)));
  const alone = await of([""]);
  const both = (await of(["eu", "us"])).map((line) => line.replaceAll(/"(eu|us)\//g, '"'));
  const families = [...metrics.filter((metric) => "cluster" in metric), ...histograms];
  const names = new Set(families.map(({ name }) => `watchkeeper_${name}`));
  const isOwn = (line: string): boolean => names.has(line.replace(/(_count)?[{ ].*$/, ""));
  assert.ok(alone.some(isOwn));
  for (const line of alone.filter(isOwn)) {
    const [, name = "", labels = "", value = ""] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    for (const cluster of ["eu", "us"]) {
      const wanted = `${name}{${labels}${labels === "" ? "" : ","}cluster="${cluster}"} ${value}`;
      assert.ok(both.includes(wanted), wanted);
    }
  }
});

test("clusters beyond 16 names, which reloads have added, share the series of other", () => {
  const journal = new Journal(manualClock());
  const all = new Metrics(journal, processWith());
  for (let index = 0; index < 100; index++)
    journal.of(`c-${index}`).write({
      kind: "upstream_connection.closed",
      backend: `c-${index}/a`,
      connection: "1",
      reason: "x",
    });
  const closed = all.read("upstream_connections_closed_total");
  assert.is(new Set(closed.map(([, , cluster]) => cluster)).size, 17);
  assert.is(
    closed.reduce((sum, [, value]) => sum + value, 0),
    100,
  );
});

test("a removed cluster's counters stay, without the names of its backends; its gauges go", async () => {
  let clusters: readonly LiveCluster[] = [answered("eu", 2)];
  const all = new Metrics(new Journal(manualClock()), processWith({ clusters: () => clusters }));
  for (const next of [answered("eu", 3), undefined]) {
    for (const cluster of clusters) all.gone(cluster);
    clusters = next === undefined ? [] : [next];
  }
  assert.equal(all.read("requests_total"), [[["LIST", "200", "other"], 5, "other"]]);
  assert.equal(
    [all.read("backend_ready"), all.read("passthrough_connections"), all.read("clients")],
    [[], [], []],
  );
  const text = await all.text();
  assert.match(text, 'watchkeeper_passthrough_bytes_total{direction="sent",cluster="other"} 6\n');
  assert.match(text, 'watchkeeper_request_duration_seconds_count{verb="LIST",cluster="other"} 5\n');
  assert.not.match(text, /"eu["/]/);
});

for (const [backends, most] of [
  [3, 2200],
  [3000, 5600],
] as const)
  test(`never more than ${most} series with ${backends} backends, whatever clients and names there are (A54)`, async () => {
    const journal = new Journal(manualClock());
    const all = new Metrics(journal, flood(3000, backends));
    for (let index = 0; index < 3000; index++) {
      const name = `n-${index}`;
      const backend = `n-${index % backends}`;
      journal.write({
        kind: "backend.changed",
        backend,
        from: backendStates[index % 5] ?? "",
        to: backendStates[Math.floor(index / 5) % 5] ?? "",
        detector: name,
        valueMs: 0,
        limitMs: 0,
        reason: name,
      });
      journal.write({ kind: "upstream_connection.closed", backend, connection: name, reason: name });
      journal.write({ kind: "request.failed", code: name, origin: name, message: name, auditId: name });
      journal.write({ kind: "certificate.loaded", name, notAfter: name });
      journal.write({ kind: "downstream_connection.refused", client: name, reason: name });
      all.gone(answered(name, 1));
    }
    const lines = seriesIn(await all.text());
    console.log(`figure: ${lines.length} series at most`);
    assert.ok(lines.length <= most, `${lines.length} series`);
    const sum = lines
      .filter((line) => line.startsWith("watchkeeper_requests_total"))
      .reduce((total, line) => total + Number(line.split(" ").at(-1)), 0);
    assert.is(sum, 6000, "what has no series of its own is in other");
  });

test("a scrape with every series there can be holds the loop for a few milliseconds", async () => {
  const full = flood(limits.requestSeries);
  const all = new Metrics(new Journal(manualClock()), full);
  for (let times = 0; times < 20; times++) await all.text();
  const started = performance.now();
  await all.text();
  const tookMs = performance.now() - started;
  console.log(`figure: the largest scrape takes ${tookMs.toFixed(1)} ms`);
  assert.ok(tookMs < 500, "generous: the machine may be busy");
});

test("a name with quotes and line feeds stays inside its label", async () => {
  const text = await new Metrics(new Journal(manualClock()), flood(1)).text();
  for (const line of seriesIn(text)) assert.match(line, /^[a-z_0-9]+(\{.*\})? ([\d.e+-]+|nan)$/i);
});

test("nothing is measured that visits every open socket", async () => {
  assert.not.match(await scraped({}), "nodejs_active_");
});

test("each state of 64 backends is shown, which is the largest number that a configuration may have", async () => {
  const views = Array.from({ length: 64 }, (_, index) => ({ name: `cp-${index}`, state: "ready" }));
  const cluster = clusterWith({ path: { backends: { ...clusterWith().path.backends, views } } });
  const lines = seriesIn(await scraped({ clusters: () => [cluster] }));
  const states = lines.filter((line) => line.startsWith("watchkeeper_backend_state{"));
  assert.is(states.length, 64 * 5);
  assert.ok(states.includes('watchkeeper_backend_state{backend="cp-63",state="ready"} 1'));
  assert.not.ok(states.some((line) => line.includes('"other"')));
});

/** Metrics by backend whose other label has no closed list of values, so that 64 backends may share "other". */
const openEnded = new Set([
  "api_failures_total",
  "api_unreachable",
  "backend_watches",
  "incident_active",
  "incidents_total",
  "requests_total",
]);

test("no metric by backend counts one of 64 backends under other", async () => {
  const names = Array.from({ length: 64 }, (_, index) => `cp-${index}`);
  const ones = new Map(names.map((name) => [name, 1]));
  const hedges = names.flatMap((backend) => hedgeOutcomes.map((key) => ({ backend, key, count: 1 })));
  const { path } = clusterWith();
  const shards = trustClasses.flatMap((trust) =>
    connectionKinds.map((kind) => ({ key: { trust, kind }, connections: [{ openCount: 1 }] })),
  );
  const { load, ...measured } = path.measurementsOf("cp-0");
  const cluster = clusterWith({
    passthrough: { counts: ones, bytes: { sent: 0, received: 0 } },
    path: {
      backends: { ...path.backends, views: names.map((name) => ({ name, state: "ready" })) },
      pools: { poolOf: () => ({ shards }) },
      hedges: {
        ...path.hedges,
        counts: { all: names.map((backend) => ({ backend, key: "hedge", count: 1 })) },
      },
      migrations: { ...path.migrations, lives: { hedges: { all: hedges } } },
      exchanges: { ...path.exchanges, watched: { ...path.exchanges.watched, events: ones } },
      measurementsOf: () => ({ ...measured, watchLagMs: 1, load: { ...load, utilization: 0.5 } }),
    },
  });
  const journal = new Journal(manualClock());
  const all = new Metrics(journal, processWith({ clusters: () => [cluster] }));
  for (const backend of names) writeAllOf(journal, backend);
  const lines = seriesIn(await all.text());
  for (const { name, labels = [] } of metrics) {
    if (!labels.includes("backend") || openEnded.has(name)) continue;
    const series = lines.filter((line) => line.startsWith(`watchkeeper_${name}{`));
    assert.ok(series.length >= 64, `${name}: ${series.length} series`);
    assert.is(
      series.find((line) => line.includes('backend="other"')),
      undefined,
      name,
    );
    assert.ok(
      series.some((line) => line.includes('backend="cp-63"')),
      name,
    );
  }
});

/** Writes each kind of entry that a metric by backend counts, with each value of the metric's other labels. */
function writeAllOf(journal: Journal, backend: string): void {
  const changed = { detector: "ping", valueMs: 0, limitMs: 0, reason: "x" };
  for (const from of backendStates)
    for (const to of backendStates)
      if (from !== to) journal.write({ kind: "backend.changed", backend, from, to, ...changed });
  const client = { listener: "l", client: "10.0.0.9", serverName: "", durationMs: 1, sent: 1, received: 1 };
  for (const reason of relayEnds) journal.write({ kind: "passthrough.ended", backend, reason, ...client });
  journal.write({ kind: "upstream_connection.closed", backend, connection: "1", reason: "x" });
  const stall = { resource: "/pods", version: "7", peersVersion: "9", behindMs: 1, watches: 1 };
  for (const detector of ["bookmark", "watch"] as const)
    journal.write({ kind: "cache.stalled", backend, detector, ...stall });
}

test("histograms of backends beyond the cap are summed under other", async () => {
  const views = Array.from({ length: 20 }, (_, index) => ({ name: `cp-${index}`, state: "ready" }));
  const pings = new Histogram([1]);
  pings.observe(0.5);
  const { path } = clusterWith();
  const measurementsOf = (name: string) => ({ ...path.measurementsOf(name), pings });
  const cluster = clusterWith({ path: { backends: { ...path.backends, views }, measurementsOf } });
  const lines = seriesIn(await scraped({ clusters: () => [cluster] }));
  assert.ok(lines.includes('watchkeeper_backend_ping_duration_seconds_count{backend="cp-10"} 1'));
  assert.ok(lines.includes('watchkeeper_backend_ping_duration_seconds_count{backend="other"} 9'));
});

test.run();
