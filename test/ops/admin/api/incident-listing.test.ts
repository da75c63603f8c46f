import { suite } from "uvu";
import * as assert from "uvu/assert";
import { viewOf } from "../../../../src/ops/admin/api/fields.ts";
import { incidentFields, incidentListing } from "../../../../src/ops/admin/api/incident-listing.ts";
import { pageOf } from "../../../../src/ops/admin/http/listing.ts";
import { timesOf } from "../../../../src/ops/admin/http/times.ts";
import { changed, PlayedJournal } from "../../../support/incidents.ts";

const test = suite("ops/admin/api/incident-listing");

test("an incident is shown with its times, its evidence and what it cost", async () => {
  const played = new PlayedJournal();
  const times = timesOf(played.clock);
  played.write(changed("a", "unknown", "ready"), changed("b", "unknown", "ready"));
  played.clock.advance(10_000);
  played.write(changed("a", "ready", "suspect"), changed("a", "suspect", "dead", { reason: "lost" }));
  played.write({ kind: "internal.error", scope: "timer", message: "x" });
  played.clock.advance(1000);
  const { evidence, ...rest } = viewOf(incidentFields, played.only, times);
  assert.equal(rest, {
    id: 1,
    kind: "backend-dead",
    severity: "warning",
    state: "active",
    subject: "a",
    backend: "a",
    summary: "a: dead: lost",
    startedAt: times.timeOf(9400),
    detectedAt: times.timeOf(10_000),
    detectionMs: 600,
    lastSeenAt: times.timeOf(10_000),
    endedAt: null,
    durationMs: 1600,
    resolution: "",
    impact: { watchesMoved: 0, slowestMoveMs: 0, watchesEnded: 0, tunnelsEnded: 0, requestsFailed: 0 },
    affected: { count: 0, names: [] },
    causedBy: { count: 0, names: [] },
    evidenceOmitted: 0,
  });
  assert.equal(evidence[0], {
    at: times.timeOf(10_000),
    detector: "ping",
    value: 600,
    threshold: 500,
    unit: "ms",
    text: "suspect: PING unanswered for 600 ms",
    auditId: "",
    repeats: 0,
  });
  played.write(changed("a", "dead", "ready"));
  const page = await pageOf(
    incidentListing(() => played.incidents.store.all, times),
    "state=ended&backend=a",
    played.clock,
  );
  assert.is(typeof page === "string" ? page : page["matching"], 1);
});

test.run();
