import { suite } from "uvu";
import * as assert from "uvu/assert";
import { families } from "../../../src/admin/metrics/families.ts";
import type { Snapshot } from "../../../src/admin/metrics/family.ts";
import { Tally } from "../../../src/admin/metrics/tally.ts";
import { Journal } from "../../../src/events/journal.ts";
import { manualClock } from "../../support/clock.ts";
import { idle } from "../../support/snapshot.ts";

const test = suite("admin/families");
const measured = {
  pingP99Ms: 2,
  suspectMs: 1500,
  probes: { answers: 3, failures: 1, lastMs: 12 },
  isDrained: false,
};

function rows(name: string, change: Partial<Snapshot>): unknown {
  const family = families.find((one) => one.name === name);
  return family?.rows({ ...idle, ...change }, new Tally(new Journal(manualClock())));
}

test("names follow Prometheus: counters end in _total, gauges do not, and each is there once", () => {
  for (const { type, name } of families) {
    assert.is(name.endsWith("_total"), type === "counter", name);
    assert.match(name, /^[a-z_]+$/);
  }
  assert.is(new Set(families.map(({ name }) => name)).size, families.length);
});

test("every row has as many values as its family has labels", () => {
  const lanes = [{ trust: "proven", kind: "plain", open: 1, streams: 2 }];
  const full: Partial<Snapshot> = {
    backends: [{ name: "cp-1", state: "ready", lanes, ...measured }],
    sessions: [{ alpn: "h2", open: 1 }],
    exchanges: [{ kind: "watch", active: 1 }],
    requests: [{ verb: "get", code: 200, backend: "cp-1", count: 1 }],
    refusedSessions: [{ reason: "flood", count: 1 }],
    resets: [{ reason: "client", count: 1 }],
    discovery: [{ cluster: "", lastSuccessAtMs: 2000, failures: 1, found: 3 }],
    certificates: [{ purpose: "serving", name: "kube", notAfterMs: 1 }],
  };
  const journal = new Journal(manualClock());
  const told = new Tally(journal);
  journal.write({
    kind: "backend.changed",
    backend: "cp-1",
    from: "a",
    to: "b",
    detector: "ping",
    valueMs: 0,
    limitMs: 0,
    reason: "",
  });
  for (const { name, labels, rows: rowsOf } of families)
    for (const [values] of rowsOf({ ...idle, ...full }, told)) assert.is(values.length, labels.length, name);
});

test("requests that were asked twice, and those that nobody can take, are shown", () => {
  assert.equal(rows("request_hedges_total", { hedges: 3 }), [[[], 3]]);
  assert.equal(rows("requests_pending", { heldRequests: 2 }), [[[], 2]]);
});

test("what the detectors measured is told in seconds", () => {
  const backends = [{ name: "cp-1", state: "ready", lanes: [], ...measured }];
  assert.equal(rows("backend_suspect_seconds_total", { backends }), [[["cp-1"], 1.5]]);
  assert.equal(rows("backend_ping_rtt_seconds", { backends }), [[["cp-1", "0.99"], 0.002]]);
  assert.equal(rows("backend_last_probe_duration_seconds", { backends }), [[["cp-1"], 0.012]]);
  assert.equal(rows("backend_probes_total", { backends }), [
    [["cp-1", "ok"], 3],
    [["cp-1", "failed"], 1],
  ]);
});

test("discovery is shown where there is one", () => {
  const discovery = [{ cluster: "", lastSuccessAtMs: 2000, failures: 1, found: 3 }];
  assert.equal(rows("discovery_last_success_timestamp_seconds", { discovery }), [[[""], 2]]);
  assert.equal(rows("discovery_failures_total", { discovery }), [[[""], 1]]);
  assert.equal(rows("discovery_backends", { discovery }), [[[""], 3]]);
  assert.equal(rows("discovery_backends", {}), []);
});

test("a backend has one row for each state, and one of them is 1", () => {
  assert.equal(
    rows("backend_state", { backends: [{ name: "cp-1", state: "dead", lanes: [], ...measured }] }),
    [
      [["cp-1", "unknown"], 0],
      [["cp-1", "ready"], 0],
      [["cp-1", "suspect"], 0],
      [["cp-1", "dead"], 1],
      [["cp-1", "draining"], 0],
    ],
  );
});

test("verbs and codes come from closed sets, in the apiserver's words (A54)", () => {
  const request = (verb: string, code: number): Snapshot["requests"][number] => ({
    verb,
    code,
    backend: "",
    count: 1,
  });
  const requests = [
    request("create", 201),
    request("HEAD", 200),
    request("x".repeat(9), 799),
    request("", 0),
  ];
  assert.equal(rows("requests_total", { requests }), [
    [["POST", "201", ""], 1],
    [["GET", "200", ""], 1],
    [["other", "other", ""], 1],
    [["other", "other", ""], 1],
  ]);
});

test("times are in seconds", () => {
  const certificates = [{ purpose: "serving", name: "kube", notAfterMs: 1500 }];
  assert.equal(rows("certificate_expiry_timestamp_seconds", { certificates }), [[["serving", "kube"], 1.5]]);
});

test.run();
