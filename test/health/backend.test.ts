import { suite } from "uvu";
import * as assert from "uvu/assert";
import { backendStates, judge, reasonOf } from "../../src/health/backend.ts";
import type { Evidence } from "../../src/health/evidence.ts";

const test = suite("health/backend");

const up: Evidence = { kind: "dial", ok: true, reason: "" };
const down: Evidence = { kind: "dial", ok: false, reason: "connect ECONNREFUSED" };
const answer: Evidence = { kind: "answer" };
const silence: Evidence = { kind: "silence", ms: 612.4 };

test("every state knows what to do with every piece of evidence", () => {
  for (const state of backendStates) {
    assert.is(judge(state, up), "ready");
    assert.is(judge(state, down), "dead");
    assert.is(judge(state, silence), state === "dead" ? "dead" : "suspect");
    assert.is(judge(state, answer), state === "suspect" ? "ready" : state);
  }
});

test("the reason is told in the operator's words", () => {
  assert.equal([up, down, silence, answer].map(reasonOf), [
    "a new session answered",
    "dial failed: connect ECONNREFUSED",
    "PING unanswered for 612 ms",
    "PINGs are answered again",
  ]);
});

test.run();
