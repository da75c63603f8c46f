import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Entry, Journal } from "../../../src/events/journal.ts";
import { watchLimits } from "../../../src/watch/limits.ts";
import { MigrationLog } from "../../../src/watch/migration/migration-log.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("migration-log");

test("moves of one second are told as one for each way they went", () => {
  const clock = manualClock();
  const journal = new Journal(clock);
  const entries: Entry[] = [];
  journal.subscribe((entry) => entries.push(entry));
  const log = new MigrationLog(clock, journal);
  for (let index = 0; index < 5000; index += 1) log.add("lost", "a", "b", index);
  log.add("lost", "a", "c", 3);
  log.add("draining", "a", "b", 0);
  clock.advance(watchLimits.logMs);
  const moved = { kind: "watches.moved" } as const;
  assert.equal(entries, [
    { ...moved, reason: "lost", from: "a", to: "b", count: 5000, slowestMs: 4999 },
    { ...moved, reason: "lost", from: "a", to: "c", count: 1, slowestMs: 3 },
    { ...moved, reason: "draining", from: "a", to: "b", count: 1, slowestMs: 0 },
  ]);
  log.add("lost", "a", "b", 7);
  clock.advance(watchLimits.logMs);
  assert.equal(entries.at(-1), { ...moved, reason: "lost", from: "a", to: "b", count: 1, slowestMs: 7 });
  clock.advance(10 * watchLimits.logMs);
  assert.is(entries.length, 4);
});

test("so are ends, by their reason and by the backend that served last", () => {
  const clock = manualClock();
  const journal = new Journal(clock);
  const entries: Entry[] = [];
  journal.subscribe((entry) => entries.push(entry));
  const log = new MigrationLog(clock, journal);
  for (let index = 0; index < 30; index += 1)
    log.end("initial_events", "a", { resource: "/pods", version: "" });
  for (const version of ["8", "7"]) log.end("expired", "b", { resource: "apps/deployments", version });
  clock.advance(watchLimits.logMs);
  assert.equal(entries, [
    { kind: "watches.ended", reason: "initial_events", from: "a", resource: "/pods", version: "", count: 30 },
    {
      kind: "watches.ended",
      reason: "expired",
      from: "b",
      resource: "apps/deployments",
      version: "7",
      count: 2,
    },
  ]);
});

test.run();
