import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Tally } from "../../../src/admin/metrics/tally.ts";
import { Journal } from "../../../src/events/journal.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("admin/tally");

test("what the journal tells is counted by its labels", () => {
  const journal = new Journal(manualClock());
  const tally = new Tally(journal);
  journal.write({
    kind: "backend.changed",
    backend: "cp-1",
    from: "ready",
    to: "dead",
    detector: "ping",
    valueMs: 0,
    limitMs: 0,
    reason: "no answer",
  });
  for (const lane of ["1", "2"])
    journal.write({ kind: "upstream_connection.closed", backend: "cp-1", lane, reason: "goaway" });
  journal.write({ kind: "certificate.refused", name: "kube", problem: "empty" });
  journal.write({ kind: "config.reloaded", file: "a.yaml", waiting: [] });
  journal.write({ kind: "config.refused", file: "a.yaml", problems: [] });
  journal.write({ kind: "internal.error", scope: "stream", message: "x" });
  journal.write({ kind: "drain.started" });
  const stall = {
    backend: "cp-1",
    resource: "/pods",
    version: "7",
    peersVersion: "9",
    behindMs: 1,
    watches: 1,
  };
  journal.write({ kind: "cache.stalled", detector: "watch", ...stall });
  const loop = { client: "10.0.0.9", userAgent: "x", resource: "/pods", version: "7", times: 5 };
  journal.write({ kind: "watch.replay_loop", ...loop });
  assert.equal(tally.watchLoops.rows, [[["/pods"], 1]]);
  assert.equal(tally.transitions.rows, [[["cp-1", "ready", "dead"], 1]]);
  assert.equal(tally.laneCloses.rows, [[["cp-1"], 2]]);
  assert.equal(tally.certificateLoads.rows, [[["kube", "rejected"], 1]]);
  assert.equal(tally.configReloads.rows, [
    [["ok"], 1],
    [["rejected"], 1],
  ]);
  assert.equal(tally.faults.rows, [[["stream"], 1]]);
  assert.equal(tally.exchangeFailures.rows, []);
  assert.equal(tally.cacheStalls.rows, [[["cp-1", "watch"], 1]]);
});

test.run();
