import { suite } from "uvu";
import * as assert from "uvu/assert";
import { findingsOf, spanOf } from "../../../../src/ops/page/views/incident.js";
import { affectedOf, causedBy } from "../../../../src/ops/page/views/incidents.js";
import { lifeOf } from "../../../../src/ops/page/views/watch.js";
import { backend, changeAt, incident, now, timeAt } from "../../../support/page.ts";

const test = suite("ops/page/views/incident");

test("a replay has half a minute on each side, at least two minutes, and nothing of the future", () => {
  const ended = spanOf({ startedAt: timeAt(600_000), endedAt: timeAt(300_000) }, now);
  assert.equal([now - ended.from, now - ended.to], [630_000, 270_000]);
  const fresh = spanOf({ startedAt: timeAt(3_000), endedAt: null }, now);
  assert.equal([now - fresh.from, now - fresh.to], [120_000, 0]);
});

test("clients that an incident harms and clients that cause it are two sentences, and equal findings one", () => {
  const [row] = incident().evidence;
  const evidence = row === undefined ? [] : [{ ...row, repeats: 2 }];
  const loop = incident({ evidence, causedBy: { count: 2, names: ["10.0.0.9 operator/v2"] } });
  assert.is(affectedOf(loop), "Affected: 10.0.0.7 kubectl/v1.36.1 and 2 more.");
  assert.is(causedBy(loop), "Caused by: 10.0.0.9 operator/v2 and 1 more.");
  assert.is(causedBy(incident()), "");
  assert.match(findingsOf(loop, [])[0]?.text ?? "", /612 ms \(2 equal findings since the row above\)$/);
});

test("a state change that is evidence, too, is one finding, and other backends' changes are beside it", () => {
  const shown = incident({ startedAt: timeAt(41_000), endedAt: timeAt(0) });
  const backends = [
    backend({
      name: "cp-2",
      history: [changeAt(40_500, "ready", "suspect"), changeAt(39_000, "suspect", "dead")],
    }),
    backend({
      name: "cp-1",
      history: [changeAt(90_000, "unknown", "ready"), changeAt(20_000, "ready", "suspect")],
    }),
  ];
  const findings = findingsOf(shown, backends).map(({ state, measured, text }) => [state, measured, text]);
  assert.equal(findings, [
    ["suspect", " 612 of 500 ms", "suspect: PING unanswered for 612 ms"],
    ["dead", "", "cp-2 is dead: for a reason"],
    ["suspect", "", "cp-1 is suspect: for a reason"],
  ]);
});

test("the life of a watch begins with its request, and tells a move from other changes", () => {
  const entry = (
    agoMs: number,
    state: string,
    at: string,
  ): { at: string; state: string; backend: string; version: string } => ({
    at: timeAt(agoMs),
    state,
    backend: at,
    version: "7",
  });
  const life = [
    entry(9_000, "parked", "cp-2"),
    entry(8_900, "resuming", "cp-2"),
    entry(8_800, "streaming", "cp-1"),
  ];
  const told = lifeOf({ startedAt: timeAt(60_000), startResourceVersion: "5", life });
  assert.equal(
    told.map(({ text, version }) => `${text} ${version}`),
    [
      "opened 5",
      "lost its stream, waits for a backend (cp-2) 7",
      "resuming at another backend (cp-2) 7",
      "continues, moved from cp-2 (cp-1) 7",
    ],
  );
});

test.run();
