import { suite } from "uvu";
import * as assert from "uvu/assert";
import { shiftedEvidence, shiftedFacts } from "../../../src/fleet/workers/messages.ts";
import { noFacts } from "../../../src/health/backend.ts";

const test = suite("fleet/workers/messages");

test("readings cross from one clock to another, and 'never' stays never", () => {
  const facts = { ...noFacts, answeredAt: 500, doubtedAt: 0, arrivedAt: -1, ejectedAt: 20 };
  const there = shiftedFacts(facts, -400);
  assert.equal([there.answeredAt, there.doubtedAt, there.arrivedAt], [100, 0, -1]);
  assert.ok(there.ejectedAt > 0, "before the other process's start, but not never");
  const evidence = { kind: "fresh", met: "answer", begunAt: 50, ms: 1, reason: "" } as const;
  assert.equal(shiftedEvidence(evidence, 1000), { ...evidence, begunAt: 1050 });
  assert.equal(shiftedEvidence({ kind: "alone" }, 1000), { kind: "alone" });
});

test.run();
