import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Histogram, rttBounds } from "../../../src/base/histogram.ts";
import { noFacts } from "../../../src/health/backend.ts";
import type { Evidence } from "../../../src/health/evidence.ts";
import { healthLimits } from "../../../src/health/limits.ts";
import type { ProbeCounts } from "../../../src/health/prober.ts";
import { Probers } from "../../../src/health/prober.ts";
import { remoteProber, SharedEvidence } from "../../../src/proxy/cluster/shared-verdict.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("proxy/cluster/shared-verdict");

const forked: Evidence = { kind: "history", isForked: true, resource: "pods", version: "5", seen: "9" };
const refuted: Evidence = { ...forked, isForked: false };
const accepted: Evidence = { kind: "history", isForked: false, resource: "", version: "", seen: "" };

test("any process refutes the proof of another history, also if it has none itself", () => {
  const shared = new SharedEvidence(() => {});
  assert.is(shared.merged("a", forked, 1), forked);
  assert.is(shared.merged("a", refuted, 2), refuted);
  assert.equal(shared.ended(1), [], "no proof is left");
});

test("the end of the last process with proof ends the suspicion, and an accepted history is accepted for all", () => {
  const shared = new SharedEvidence(() => {});
  shared.merged("a", forked, 1);
  shared.merged("a", forked, 2);
  assert.equal(shared.ended(1), []);
  const [[backend, evidence] = ["", undefined]] = shared.ended(2);
  assert.is(backend, "a");
  assert.ok(evidence?.kind === "history" && !evidence.isForked && evidence.seen !== "");
  shared.merged("a", forked, 1);
  shared.merged("a", forked, 2);
  assert.is(shared.merged("a", accepted, 1), accepted);
  shared.judged("a", { ...noFacts, isForked: false }, accepted);
  assert.equal(shared.ended(2), []);
});

test("the latest facts are kept for workers that start later, until the backend is removed", () => {
  const heard: string[] = [];
  const shared = new SharedEvidence((backend, { state }, { kind }) =>
    heard.push(`${backend} ${state} ${kind}`),
  );
  shared.judged("a", { ...noFacts, state: "ready" }, { kind: "connections-answer" });
  shared.judged("a", { ...noFacts, state: "suspect" }, { kind: "reads-answer" });
  assert.equal(heard, ["a ready connections-answer", "a suspect reads-answer"]);
  assert.equal(
    Array.from(shared.latest, ([name, { state }]) => `${name} ${state}`),
    ["a suspect"],
  );
  shared.merged("a", { kind: "connection-opened", ms: 1 }, 1);
  shared.suspectLargePackets("a", 1000);
  assert.ok(shared.mayLoseLargePackets("a", 2000));
  assert.not(shared.mayLoseLargePackets("a", 5000));
  assert.not(shared.mayLoseLargePackets("b", 2000));
  shared.reconcile(["b"]);
  assert.is(shared.latest.size, 0);
  assert.not(shared.mayLoseLargePackets("a", 2000));
});

test("a backend whose connections are silent in all processes does not lose only large packets", () => {
  const shared = new SharedEvidence(() => {});
  for (const process of [0, 1]) shared.merged("a", { kind: "connection-opened", ms: 1 }, process);
  // A worker finds its connections silent one after another.
  shared.suspectLargePackets("a", 1000);
  const silent: Evidence = { kind: "connections-silent", ms: 500, limitMs: 500 };
  shared.merged("a", silent, 1);
  assert.ok(shared.mayLoseLargePackets("a", 1000), "the connections of the parent answer");
  shared.merged("a", silent, 0);
  assert.not(shared.mayLoseLargePackets("a", 1100));
  shared.merged("a", { kind: "connections-answer" }, 1);
  assert.ok(shared.mayLoseLargePackets("a", 1200));
});

test("a worker asks for a probe at most as often as a prober begins one", () => {
  const clock = manualClock();
  const asked: string[] = [];
  const counts: ProbeCounts = { answers: 0, failures: 0, lastMs: 0, durations: new Histogram(rttBounds) };
  const probe = (backend: string, symptom: string): void => void asked.push(`${backend} ${symptom}`);
  const probers = new Probers((name) => remoteProber(clock, { probe }, counts, name));
  assert.is(probers.of("a"), undefined);
  probers.reconcile(["a", "b"]);
  for (let failure = 0; failure < 1000; failure += 1) probers.of("a")?.probeNow();
  probers.of("b")?.expediteProbe();
  probers.of("a")?.probeLargePackets();
  assert.equal(asked.splice(0), ["a failed", "b slow", "a large-packets"]);
  clock.advance(healthLimits.urgentProbeMs);
  probers.of("a")?.probeNow();
  assert.equal(asked, ["a failed"]);
  probers.reconcile(["b"]);
  assert.is(probers.of("a"), undefined);
});

test.run();
