import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Snapshot } from "../../../src/admin/metrics/family.ts";
import { createMetrics } from "../../../src/admin/metrics/metrics.ts";
import { Histogram, requestBounds } from "../../../src/base/histogram.ts";
import { limits } from "../../../src/base/limits.ts";
import { Journal } from "../../../src/events/journal.ts";
import { manualClock } from "../../support/clock.ts";
import { idle } from "../../support/snapshot.ts";

const test = suite("admin/metrics");

function seriesIn(text: string): string[] {
  return text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
}

/** As many rows as a hostile world can make, each with labels of its own. */
function flood(count: number): Snapshot {
  const rows = Array.from({ length: count }, (_, index) => `\n"\\{x="${index}`);
  return {
    ...idle,
    backends: rows.map((name) => ({
      name,
      state: "ready",
      lanes: rows.slice(0, 9).map((kind) => ({ trust: kind, kind, open: 1, streams: 1 })),
      pingP99Ms: 1,
      suspectMs: 1,
      isDrained: false,
      probes: { answers: 1, failures: 1, lastMs: 1 },
    })),
    sessions: rows.map((alpn) => ({ alpn, open: 1 })),
    requests: rows.map((backend, index) => ({ verb: backend, code: index % 700, backend, count: 1 })),
    refusedSessions: rows.map((reason) => ({ reason, count: 1 })),
    resets: rows.map((reason) => ({ reason, count: 1 })),
    certificates: rows.map((name) => ({ purpose: name, name, notAfterMs: 1 })),
    incidents: {
      counts: rows.map((backend) => ({ kind: backend, backend, count: 1 })),
      active: rows.map((kind) => ({ kind, backend: kind })),
    },
    clients: { count, requests: new Map(rows.map((agent) => [agent, 1])) },
    locks: rows.map((name) => ({
      namespace: name,
      name,
      holder: name,
      source: name,
      renewedAtMs: 1,
      verdict: name,
    })),
    durations: new Map(rows.map((verb) => [verb, new Histogram(requestBounds)])),
  };
}

test("a scrape shows the fields as they are now, and Node's own", async () => {
  let snapshot = idle;
  const { metrics, contentType } = createMetrics(new Journal(manualClock()), () => snapshot);
  const requests = [{ verb: "list", code: 200, backend: "cp-1", count: 7 }];
  snapshot = { ...idle, requests, watchEvents: 3, exchanges: [{ kind: "watch", active: 2 }] };
  const lines = seriesIn(await metrics());
  for (const line of [
    'watchkeeper_requests_total{verb="LIST",code="200",backend="cp-1"} 7',
    "watchkeeper_watch_events_total 3",
    'watchkeeper_requests_active{kind="watch"} 2',
    "watchkeeper_config_last_reload_success_timestamp_seconds 1800000000",
    `watchkeeper_build_info{version="0.1.0",node="${process.versions.node}"} 1`,
  ])
    assert.ok(lines.includes(line), line);
  assert.ok(lines.some((line) => line.startsWith("process_resident_memory_bytes ")));
  assert.match(contentType, "text/plain; version=0.0.4");
});

test("what is gone from the snapshot is gone from the next scrape", async () => {
  let snapshot: Snapshot = { ...idle, sessions: [{ alpn: "h2", open: 1 }] };
  const { metrics } = createMetrics(new Journal(manualClock()), () => snapshot);
  assert.match(await metrics(), 'watchkeeper_downstream_connections{alpn="h2"} 1');
  snapshot = idle;
  assert.not.match(await metrics(), "watchkeeper_downstream_connections{");
});

test("the journal is counted", async () => {
  const journal = new Journal(manualClock());
  const { metrics } = createMetrics(journal, () => idle);
  journal.write({ kind: "internal.error", scope: "session", message: "x" });
  assert.match(await metrics(), 'watchkeeper_internal_errors_total{scope="session"} 1');
});

test("never more than 2,000 series, whatever clients, backends and names there are (A54)", async () => {
  const journal = new Journal(manualClock());
  const { metrics } = createMetrics(journal, () => flood(3000));
  for (let index = 0; index < 3000; index++) {
    const name = `n-${index}`;
    journal.write({
      kind: "backend.changed",
      backend: name,
      from: name,
      to: name,
      detector: name,
      valueMs: 0,
      limitMs: 0,
      reason: name,
    });
    journal.write({ kind: "upstream_connection.closed", backend: name, lane: name, reason: name });
    journal.write({ kind: "request.failed", code: name, origin: name, message: name, auditId: name });
    journal.write({ kind: "certificate.loaded", name, notAfter: name });
  }
  const lines = seriesIn(await metrics());
  console.log(`figure: ${lines.length} series at most`);
  assert.ok(lines.length <= 2000, `${lines.length} series`);
  const sum = lines
    .filter((line) => line.startsWith("watchkeeper_requests_total"))
    .reduce((total, line) => total + Number(line.split(" ").at(-1)), 0);
  assert.is(sum, 3000, "what has no series of its own is in other");
});

test("a scrape with every series there can be holds the loop for a few milliseconds", async () => {
  const full = flood(limits.requestSeries);
  const { metrics } = createMetrics(new Journal(manualClock()), () => full);
  for (let times = 0; times < 20; times++) await metrics();
  const started = performance.now();
  await metrics();
  const tookMs = performance.now() - started;
  console.log(`figure: the largest scrape takes ${tookMs.toFixed(1)} ms`);
  assert.ok(tookMs < 500, "generous: the machine may be busy");
});

test("a name with quotes and line feeds stays inside its label", async () => {
  const { metrics } = createMetrics(new Journal(manualClock()), () => flood(1));
  for (const line of seriesIn(await metrics())) assert.match(line, /^[a-z_0-9]+(\{.*\})? ([\d.e+-]+|nan)$/i);
});

test("nothing is measured that visits every open socket", async () => {
  const { metrics } = createMetrics(new Journal(manualClock()), () => idle);
  assert.not.match(await metrics(), "nodejs_active_");
});

test.run();
