import { suite } from "uvu";
import * as assert from "uvu/assert";
import { incidentLimits } from "../../../src/ops/incidents/limits.ts";
import { type Finding, IncidentStore } from "../../../src/ops/incidents/store.ts";

const test = suite("ops/incidents/store");

const finding = (subject: string, at = 0): Finding => ({
  kind: "overload",
  subject,
  backend: subject,
  summary: "too much",
  evidence: [{ at, detector: "x", value: 1, threshold: 0, unit: "times", text: "t" }],
});

const deaf = { opened() {}, ended() {} };

test("what is found again adds to the incident that is open", () => {
  const heard: string[] = [];
  const store = new IncidentStore({
    opened: ({ id }) => heard.push(`+${id}`),
    ended: ({ id }) => heard.push(`-${id}`),
  });
  store.found(finding("a"), 5);
  store.found(finding("a", 9), 9);
  assert.is(store.find("overload", "a")?.evidence.length, 2);
  store.end("overload", "a", "calm", 20);
  store.end("overload", "a", "calm", 21);
  store.found(finding("a", 30), 30);
  assert.equal(heard, ["+1", "-1", "+2"]);
  assert.equal(
    store.all.map(({ id, endedAt, ending }) => [id, endedAt, ending]),
    [
      [2, -1, ""],
      [1, 20, "calm"],
    ],
  );
  assert.is(store.byId(1)?.startedAt, 0, "its first row's time");
});

test("one that no event ends is over when it was not seen for its time", () => {
  const store = new IncidentStore(deaf);
  store.found(finding("a"), 0);
  store.calm(incidentLimits.overloadQuietMs - 1);
  assert.is(store.active.length, 1);
  store.calm(incidentLimits.overloadQuietMs);
  assert.is(store.active.length, 0);
});

test("so many at once and so many of the past, and no more; each counted", () => {
  const store = new IncidentStore(deaf);
  for (let index = 0; index < incidentLimits.incidentsActive + 10; index += 1)
    store.found(finding(`s-${index}`), 1);
  assert.equal([store.active.length, store.dropped], [incidentLimits.incidentsActive, 10]);
  for (let index = 0; index < 2 * incidentLimits.incidentsKept; index += 1) {
    store.found(finding("again"), 2);
    store.end("overload", `s-${index}`, "", 2);
    store.end("overload", "again", "", 2);
  }
  assert.is(store.all.length, incidentLimits.incidentsKept);
  assert.ok(store.counts.length <= incidentLimits.incidentCounts + 1);
  assert.is(
    store.counts.reduce((sum, { count }) => sum + count, 0),
    store.all[0]?.id,
  );
});

test("a subject of any length is one and the same", () => {
  const store = new IncidentStore(deaf);
  const long = "x".repeat(10_000);
  store.found(finding(long), 0);
  assert.is(store.active[0]?.subject.length, incidentLimits.textChars);
  store.end("overload", long, "", 1);
  assert.is(store.active.length, 0);
});

test("a backend that is counted by name stays so when many others follow", () => {
  const store = new IncidentStore(deaf);
  const once = (backend: string): void => {
    store.found(finding(backend), 0);
    store.end("overload", backend, "", 0);
  };
  const others = Array.from({ length: incidentLimits.incidentCounts }, (_, index) => `b-${index}`);
  for (const backend of ["a", ...others, "a"]) once(backend);
  assert.is(store.counts.find(({ backend }) => backend === "a")?.count, 2);
});

test.run();
