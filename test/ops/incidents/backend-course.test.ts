import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Entry } from "../../../src/events/journal.ts";
import { BackendCourse } from "../../../src/ops/incidents/backend-course.ts";
import { incidentLimits } from "../../../src/ops/incidents/limits.ts";
import { changed, met } from "../../support/incidents.ts";

const test = suite("ops/incidents/backend-course");

function play(...entries: readonly Entry[]): BackendCourse {
  const course = new BackendCourse("a");
  for (const [at, entry] of entries.entries())
    if (entry.kind === "backend.changed") course.changed(entry, 1000 * (at + 1));
    else if (entry.kind === "backend.probed") course.met(entry, 1000 * (at + 1));
  return course;
}

test("its doubt begins with what was measured first, and is due when it has lasted", () => {
  const course = play(changed("a", "ready", "suspect", { valueMs: 600 }));
  assert.equal([course.doubtAt, course.dueAt], [400, 1000 + incidentLimits.unprovenMs]);
  course.handOver();
  assert.equal([course.rows.length, course.dueAt], [0, Number.POSITIVE_INFINITY]);
  assert.ok(course.isDown, "and stays down until it is ready");
});

test("death is due at once, unless it was announced", () => {
  assert.is(play(changed("a", "ready", "suspect"), changed("a", "suspect", "dead")).dueAt, 2000);
  const planned = play(changed("a", "ready", "draining"), changed("a", "draining", "dead"));
  assert.is(planned.dueAt, 2000 + incidentLimits.restartMs);
});

test("what a new socket met is a sentence, with its reason where there is one", () => {
  const rows = play(
    changed("a", "ready", "suspect"),
    met("a", "silence", "tcp"),
    met("a", "answer", "tls"),
  ).rows;
  assert.equal(
    rows.slice(1).map(({ text }) => text),
    ["A new connection got no answer after TCP connected: as played", "A new connection was answered"],
  );
});

test("a backend whose large packets are lost is told so, whatever its new sockets meet afterwards", () => {
  const lost = changed("a", "ready", "suspect", { detector: "packets" });
  assert.is(play(met("a", "silence", "tcp"), lost, met("a", "silence")).kind, "backend-packets-lost");
  assert.is(play(met("a", "silence", "tcp"), changed("a", "ready", "suspect")).kind, "backend-frozen");
});

test("never more rows than an incident has", () => {
  const course = play(changed("a", "ready", "suspect"));
  for (let index = 0; index < 2 * incidentLimits.incidentEvidence; index += 1) {
    const entry = met("a", index % 2 === 0 ? "silence" : "refusal");
    if (entry.kind === "backend.probed") course.met(entry, index);
  }
  assert.is(course.rows.length, incidentLimits.incidentEvidence);
});

test.run();
