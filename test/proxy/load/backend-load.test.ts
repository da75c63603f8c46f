import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../../src/h2/core/field.ts";
import { classify } from "../../../src/kube/request-info.ts";
import { BackendLoads } from "../../../src/proxy/load/backend-load.ts";
import { loadLimits } from "../../../src/proxy/load/limits.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("proxy/load/backend-load");
const get = classify("GET", "/api/v1/namespaces/a/pods/b");
const list = classify("GET", "/api/v1/pods");
const watch = classify("GET", "/api/v1/pods?watch=true");
const eviction = classify("POST", "/api/v1/namespaces/a/pods/b/eviction");
const head = (status: number, ...fields: Field[]): Field[] => [
  new Field(":status", String(status)),
  ...fields,
];

function measured(...names: string[]) {
  const clock = manualClock();
  const loads = new BackendLoads(clock, () => true);
  loads.reconcile(names);
  loads.start();
  /** Simulates ten reads a second at a backend, each of which takes `ms`. */
  const reads = (backend: string, ms: number, seconds = 10, info = get): void => {
    for (let second = 0; second < seconds; second += 1) {
      for (let count = 0; count < 10; count += 1) loads.answered(backend, info, ms, head(200));
      clock.advance(1000);
    }
  };
  return { clock, loads, reads };
}

test("requests under way are plain requests between begin and end", () => {
  const { loads } = measured("a");
  loads.began("a", get);
  loads.began("a", list);
  loads.began("a", watch);
  assert.is(loads.of("a")?.requestsActive, 2);
  loads.ended("a", watch);
  loads.ended("a", get);
  assert.is(loads.of("a")?.requestsActive, 1);
  loads.reconcile([]);
  loads.reconcile(["a"]);
  loads.ended("a", list);
  assert.is(loads.of("a")?.requestsActive, 0);
});

test("the rate of requests follows within three averages", () => {
  const { clock, loads } = measured("a");
  for (let second = 0; second < 30; second += 1) {
    for (let count = 0; count < 50; count += 1) loads.began("a", get);
    clock.advance(1000);
  }
  assert.ok(Math.abs((loads.of("a")?.requestsPerSecond ?? 0) - 50) < 3);
  clock.advance(60_000);
  assert.ok((loads.of("a")?.requestsPerSecond ?? 1) < 0.2);
});

test("a backend is slow by as much as its reads take longer than at the median of the others", () => {
  const { loads, reads } = measured("a", "b", "c");
  reads("a", 40);
  reads("b", 10);
  reads("c", 12);
  assert.is(Math.round(loads.slowness("a")), 4);
  assert.is(loads.slowness("b"), 1);
});

test("a few ms more are distance, and few reads are no measurement", () => {
  const { loads, reads } = measured("a", "b", "c");
  reads("a", 1 + loadLimits.slowReadMs * 0.9);
  reads("b", 1);
  reads("c", 100, 1);
  assert.equal([loads.slowness("a"), loads.slowness("c")], [1, 1]);
});

test("long lists alone do not make a backend slow", () => {
  const { loads, reads } = measured("a", "b");
  reads("a", 10);
  reads("b", 10);
  reads("a", 900, 10, list);
  reads("b", 30, 10, list);
  assert.is(loads.slowness("a"), 1);
});

test("a 429 with Retry-After asks for a pause of at most half a minute; that of an eviction does not", () => {
  const { clock, loads } = measured("a");
  const after = (seconds: string): Field => new Field("retry-after", seconds);
  loads.answered("a", eviction, 1, head(429, after("10")));
  loads.answered("a", get, 1, head(429));
  loads.answered("a", get, 1, head(429, after("soon")));
  assert.is(loads.isPaused("a"), false);
  loads.answered("a", watch, 1, head(429, after("1")));
  assert.equal([loads.isPaused("a"), loads.of("a")?.refusals], [true, 3]);
  clock.advance(1000);
  assert.is(loads.isPaused("a"), false);
  loads.answered("a", get, 1, head(429, after("3600")));
  clock.advance(loadLimits.mostPauseMs - 1);
  assert.is(loads.isPaused("a"), true);
  clock.advance(1);
  assert.is(loads.isPaused("a"), false);
});

test("the utilisation that a backend reports counts for half a minute, and is read four times a second", () => {
  const { clock, loads } = measured("a");
  const report = (value: number): void =>
    loads.answered(
      "a",
      get,
      1,
      head(200, new Field("endpoint-load-metrics", `TEXT cpu_utilization=${value}`)),
    );
  const utilization = (): number | undefined => loads.of("a")?.utilization(clock.now());
  assert.is(utilization(), undefined);
  report(0.5);
  report(0.9);
  assert.is(utilization(), 0.5);
  clock.advance(loadLimits.reportPauseMs);
  report(0.9);
  assert.is(utilization(), 0.9);
  clock.advance(loadLimits.reportMs);
  assert.is(utilization(), undefined);
});

test("a backend that is much slower than the others loses capacity until it has come back", () => {
  const { loads, reads } = measured("a", "b", "c");
  for (let round = 0; round < 3; round += 1)
    for (const [name, ms] of [
      ["a", 100],
      ["b", 10],
      ["c", 10],
    ] as const)
      reads(name, ms);
  assert.ok(loads.capacity("a") < 0.8, String(loads.capacity("a")));
  assert.equal([loads.capacity("b"), loads.capacity("c")], [1, 1]);
  loads.returned("a");
  assert.equal([loads.capacity("a"), loads.slowness("a")], [1, 1]);
});

test("utilisations count instead of times if all backends report them", () => {
  const { clock, loads } = measured("a", "b");
  const report = (backend: string, value: number): void => {
    const field = new Field("endpoint-load-metrics", `TEXT cpu_utilization=${value}`);
    loads.answered(backend, get, backend === "b" ? 100 : 1, head(200, field));
  };
  for (let second = 0; second < 60; second += 1) {
    for (let count = 0; count < 10; count += 1) report("a", 0.9);
    for (let count = 0; count < 10; count += 1) report("b", 0.3);
    clock.advance(1000);
  }
  assert.ok(loads.capacity("a") < 0.7, String(loads.capacity("a")));
  assert.is(loads.capacity("b"), 1);
});

test("a backend that is not configured any more is not measured", () => {
  const { loads } = measured("a");
  loads.began("b", get);
  loads.answered("b", get, 1, head(429, new Field("retry-after", "1")));
  assert.equal([loads.isPaused("b"), loads.slowness("b"), loads.of("b")], [false, 1, undefined]);
});

test.run();
