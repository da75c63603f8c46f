import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import {
  addClient,
  addEvidence,
  addImpact,
  type Incident,
  noClients,
  noImpact,
} from "../../../src/ops/incidents/incident.ts";
import { incidentLimits } from "../../../src/ops/incidents/limits.ts";

const test = suite("ops/incidents/incident");

function incident(): Incident {
  return {
    id: 1,
    kind: "overload",
    subject: "",
    backend: "",
    cluster: "",
    summary: "",
    startedAt: 0,
    detectedAt: 0,
    evidence: [],
    omitted: 0,
    impact: noImpact(),
    affected: noClients(),
    causedBy: noClients(),
    lastSeenAt: 0,
    endedAt: -1,
    ending: "",
  };
}

test("of too many rows the first and the last stay", () => {
  const one = incident();
  for (let at = 0; at < 100; at += 1)
    addEvidence(one, {
      at,
      detector: "x",
      value: 0,
      threshold: 0,
      unit: "",
      text: `${at}${"t".repeat(10_000)}`,
    });
  assert.is(one.evidence.length, incidentLimits.incidentEvidence);
  assert.equal([one.evidence[0]?.at, one.evidence.at(-1)?.at], [0, 99]);
  assert.equal([one.omitted, one.lastSeenAt], [100 - incidentLimits.incidentEvidence, 99]);
  assert.is(one.evidence[0]?.text.length, incidentLimits.textChars);
});

test("of equal findings the first and the latest stay, and those between are counted", () => {
  const one = incident();
  const add = (at: number, text: string, detector = "x"): void =>
    addEvidence(one, { at, detector, value: at, threshold: 0, unit: "ms", text });
  for (let at = 0; at < 100; at += 1) add(at, `Pod default/a-1 was deleted ${at}.0 s ago`);
  add(100, "Pod default/a-2 was deleted 1.0 s ago");
  add(101, "Pod default/a-2 was deleted 2.0 s ago");
  add(102, "Pod default/a-2 was deleted 3.0 s ago", "y");
  assert.equal(
    one.evidence.map(({ at, repeats = 0 }) => [at, repeats]),
    [
      [0, 0],
      [99, 98],
      [100, 0],
      [101, 0],
      [102, 0],
    ],
  );
  assert.equal([one.omitted, one.lastSeenAt], [0, 102]);
});

test("of those affected a few are named, each once, and all are counted", () => {
  const { affected } = incident();
  for (let index = 0; index < 100; index += 1) addClient(affected, `client-${index}`);
  addClient(affected, "client-0");
  assert.equal([affected.names.length, affected.count], [limits.incidentClients, 100]);
});

test("an impact adds up, and keeps the slowest", () => {
  const impact = noImpact();
  addImpact(impact, { watchesMoved: 2, slowestMoveMs: 9 });
  addImpact(impact, { watchesMoved: 3, slowestMoveMs: 4, requestsFailed: 1 });
  assert.equal([impact.watchesMoved, impact.slowestMoveMs, impact.requestsFailed], [5, 9, 1]);
});

test.run();
