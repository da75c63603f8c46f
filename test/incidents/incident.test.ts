import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../src/base/limits.ts";
import {
  addAffected,
  addEvidence,
  addImpact,
  type Incident,
  noImpact,
} from "../../src/incidents/incident.ts";
import { incidentLimits } from "../../src/incidents/limits.ts";

const test = suite("incidents/incident");

function incident(): Incident {
  return {
    id: 1,
    kind: "overload",
    subject: "",
    backend: "",
    summary: "",
    startedAt: 0,
    detectedAt: 0,
    evidence: [],
    omitted: 0,
    impact: noImpact(),
    affected: { names: [], count: 0 },
    lastSeenAt: 0,
    endedAt: -1,
    ending: "",
  };
}

test("of too many rows the first and the last stay", () => {
  const one = incident();
  for (let at = 0; at < 100; at += 1)
    addEvidence(one, { at, detector: "x", value: 0, threshold: 0, unit: "", text: "t".repeat(10_000) });
  assert.is(one.evidence.length, incidentLimits.incidentEvidence);
  assert.equal([one.evidence[0]?.at, one.evidence.at(-1)?.at], [0, 99]);
  assert.equal([one.omitted, one.lastSeenAt], [100 - incidentLimits.incidentEvidence, 99]);
  assert.is(one.evidence[0]?.text.length, incidentLimits.textChars);
});

test("of those affected a few are named, each once, and all are counted", () => {
  const { affected } = incident();
  for (let index = 0; index < 100; index += 1) addAffected(affected, `client-${index}`);
  addAffected(affected, "client-0");
  assert.equal([affected.names.length, affected.count], [limits.incidentClients, 100]);
});

test("an impact adds up, and keeps the slowest", () => {
  const impact = noImpact();
  addImpact(impact, { watchesMoved: 2, slowestMoveMs: 9 });
  addImpact(impact, { watchesMoved: 3, slowestMoveMs: 4, requestsFailed: 1 });
  assert.equal([impact.watchesMoved, impact.slowestMoveMs, impact.requestsFailed], [5, 9, 1]);
});

test.run();
