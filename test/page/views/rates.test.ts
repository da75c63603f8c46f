import { suite } from "uvu";
import * as assert from "uvu/assert";
import { grown, type Point } from "../../../src/page/views/rates.js";
import { figuresAt } from "../../support/page.ts";

const test = suite("page/views/rates");

test("two readings make a rate per second", () => {
  const before = figuresAt(10_000);
  const after = {
    ...figuresAt(12_000),
    requests: { "2xx": 300, "5xx": 4 },
    watchEvents: 60,
    cpuMs: 500,
    eventLoopDelayMs: 3,
  };
  const [point] = grown([], before, after);
  assert.equal(point?.values, [152, 2, 30, 25, 3]);
});

test("one reading makes none, nor do two of the same moment", () => {
  const reading = figuresAt(10_000);
  assert.equal(grown([], undefined, reading), []);
  assert.equal(grown([], reading, reading), []);
});

test("a process that began anew is no negative rate", () => {
  assert.equal(
    grown([], figuresAt(10_000), { ...figuresAt(12_000), uptimeMs: figuresAt(10_000).uptimeMs - 1 }),
    [],
  );
});

test("a quarter of an hour is kept, and no more", () => {
  let points: readonly Point[] = [];
  for (let second = 0; second < 1_000; second++) {
    points = grown(points, figuresAt(second * 1_000), figuresAt(second * 1_000 + 1_000));
  }
  assert.is(points.length, 900);
});

test.run();
