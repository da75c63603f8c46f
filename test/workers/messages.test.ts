import { suite } from "uvu";
import * as assert from "uvu/assert";
import { noFacts } from "../../src/health/backend.ts";
import { isToParent, isToWorker, shiftedEvidence, shiftedFacts } from "../../src/workers/messages.ts";

const test = suite("workers/messages");

test("readings cross from one clock to another, and 'never' stays never", () => {
  const facts = { ...noFacts, answeredAt: 500, doubtedAt: 0, arrivedAt: -1, ejectedAt: 20 };
  const there = shiftedFacts(facts, -400);
  assert.equal([there.answeredAt, there.doubtedAt, there.arrivedAt], [100, 0, -1]);
  assert.ok(there.ejectedAt > 0, "before the other process's start, but not never");
  const evidence = { kind: "fresh", met: "answer", begunAt: 50, ms: 1, reason: "" } as const;
  assert.equal(shiftedEvidence(evidence, 1000), { ...evidence, begunAt: 1050 });
  assert.equal(shiftedEvidence({ kind: "alone" }, 1000), { kind: "alone" });
});

test("a message of another version, kind or form is refused", () => {
  assert.ok(isToParent({ kind: "hello", version: 1 }));
  assert.not(isToParent({ kind: "hello", version: 2 }));
  assert.not(isToParent({ kind: "toString" }));
  assert.not(isToParent({ kind: 7 }));
  assert.not(isToParent({ kind: "entries", entries: [{}], dropped: 0 }));
  assert.not(isToParent({ kind: "evidence", backend: "a", evidence: null }));
  assert.not(isToParent({ kind: "probe", backend: "a", symptom: "curiosity" }));
  assert.not(
    isToParent({
      kind: "load",
      sockets: 1.5,
      h2: 0,
      h1: 0,
      received: 0,
      requests: 0,
      complaint: "",
      limits: {},
    }),
  );
  assert.not(isToWorker({ kind: "ready" }));
  assert.ok(isToWorker({ kind: "drain", times: { shutdownDelayMs: 0, timeoutMs: 1 } }));
});

test.run();
