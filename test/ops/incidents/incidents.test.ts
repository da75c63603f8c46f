import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Entry } from "../../../src/events/journal.ts";
import { incidentLimits } from "../../../src/ops/incidents/limits.ts";
import { changed, PlayedJournal } from "../../support/incidents.ts";

const test = suite("ops/incidents/incidents");

test("the journal is told when one begins and when it ends, with what is to be known at a glance", () => {
  const played = new PlayedJournal();
  const told: Entry[] = [];
  played.journal.subscribe((entry) => {
    if (entry.kind.startsWith("incident.")) told.push(entry);
  });
  played.write(changed("a", "unknown", "ready"), changed("b", "unknown", "ready"));
  played.clock.advance(5000);
  played.write(changed("a", "ready", "suspect"));
  played.clock.advance(incidentLimits.unprovenMs);
  played.clock.advance(10_000);
  played.write(changed("a", "suspect", "ready", { reason: "/readyz: ok" }));
  assert.equal(told, [
    {
      kind: "incident.opened",
      id: 1,
      incident: "backend-blackholed",
      subject: "a",
      backend: "a",
      severity: "warning",
      summary: "a: suspect: PING unanswered for 600 ms",
      detectionMs: 600 + incidentLimits.unprovenMs,
    },
    {
      kind: "incident.ended",
      id: 1,
      incident: "backend-blackholed",
      subject: "a",
      backend: "a",
      lastedMs: 600 + incidentLimits.unprovenMs + 10_000,
      watchesMoved: 0,
      clients: 0,
      reason: "Ready again: /readyz: ok",
    },
  ]);
});

test("stopped, it reads and does nothing more", () => {
  const played = new PlayedJournal();
  played.write(changed("a", "ready", "suspect"));
  played.incidents.stop();
  played.write({ kind: "internal.error", scope: "stream", message: "x" });
  played.clock.advance(1e6);
  assert.equal(played.told, []);
});

test.run();
