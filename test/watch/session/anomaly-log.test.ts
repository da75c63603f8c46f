import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { type Entry, Journal } from "../../../src/events/journal.ts";
import { watchLimits } from "../../../src/watch/limits.ts";
import { AnomalyLog, type AnomalySource } from "../../../src/watch/session/anomaly-log.ts";
import { orderOf } from "../../support/attempt-owner.ts";
import { manualClock } from "../../support/clock.ts";
import { PlayedWatch } from "../../support/watch-path.ts";

const test = suite("anomaly-log");

function scene() {
  const clock = manualClock();
  const journal = new Journal(clock);
  const told: Entry[] = [];
  journal.subscribe((entry) => told.push(entry));
  const one: AnomalySource = { context: orderOf(), resource: "/pods", backend: "a" };
  return { clock, told, one, anomalies: new AnomalyLog(clock, journal) };
}

test("each thing is told once a minute, however many watches show it", () => {
  const { clock, told, one, anomalies } = scene();
  for (let times = 0; times < 50; times += 1) anomalies.hung(one, 131_000.4);
  anomalies.hung({ ...one, backend: "b" }, 131_000);
  assert.is(told.length, 2);
  clock.advance(limits.anomalyMs);
  anomalies.hung(one, 191_000);
  assert.is(told.length, 3);
  const { kind, ...rest } = told[0] ?? {};
  assert.is(kind, "watch.hung");
  assert.equal(rest, {
    client: "10.0.0.9",
    userAgent: "",
    resource: "/pods",
    backend: "a",
    silentMs: 131_000,
    limitMs: watchLimits.hungMs,
  });
});

test("only so many are remembered", () => {
  const { told, one, anomalies } = scene();
  for (let index = 0; index <= limits.anomalies; index += 1)
    anomalies.hung({ ...one, resource: `/r-${index}` }, 1);
  anomalies.hung({ ...one, resource: "/r-0" }, 1);
  assert.is(told.length, limits.anomalies + 2);
});

test("an event from before what its backend had shown is told with both versions (seed 001)", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a ~9a -8a -8b");
  const [entry, ...rest] = watch.entries("event.version_regressed");
  assert.equal(
    [entry?.type, entry?.version, entry?.seen, entry?.resource, rest.length],
    ["DELETED", "8", "9", "/configmaps", 0],
  );
});

test.run();
