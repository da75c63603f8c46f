import { suite } from "uvu";
import * as assert from "uvu/assert";
import { ReadSpread } from "../../../src/proxy/context/read-spread.ts";
import { WorkMeter } from "../../../src/proxy/context/work-meter.ts";

const test = suite("proxy/context/read-spread");

function countsOf(spread: ReadSpread, reads: number): Record<string, number> {
  const counts: Record<string, number> = {};
  for (let read = 0; read < reads; read += 1) {
    const to = spread.next() ?? "own";
    counts[to] = (counts[to] ?? 0) + 1;
  }
  return counts;
}

test("the backends get their parts of the reads", () => {
  const spread = new ReadSpread(0);
  assert.equal(countsOf(spread, 5), { own: 5 });
  spread.divide(new Map(Object.entries({ a: 0.5, b: 0.3, c: 0.2 })));
  const counts = countsOf(spread, 1000);
  for (const [backend, reads] of Object.entries({ a: 500, b: 300, c: 200 }))
    assert.ok(Math.abs((counts[backend] ?? 0) - reads) <= 2, JSON.stringify(counts));
  assert.is(String(spread), "divided a 0.50, b 0.30, c 0.20");
});

test("every third read gets the parts, too", () => {
  const spread = new ReadSpread(0);
  spread.divide(new Map(Object.entries({ a: 1 / 3, b: 1 / 3, c: 1 / 3 })));
  const heavy = Array.from({ length: 900 }, () => spread.next()).filter((_, at) => at % 3 === 0);
  for (const name of ["a", "b", "c"])
    assert.ok(Math.abs(heavy.filter((backend) => backend === name).length - 100) <= 3, name);
});

test("reads that gather go to the client's own backend", () => {
  const spread = new ReadSpread(0);
  spread.divide(new Map([["b", 1]]));
  spread.gather();
  assert.equal(countsOf(spread, 3), { own: 3 });
  assert.is(spread.isGathering, true);
});

test("a spread counts the time since the client's other requests from its own start", () => {
  const spread = new ReadSpread(1000);
  assert.is(spread.unmixedMs(3000), 2000);
  spread.mixes(2500);
  assert.is(spread.unmixedMs(3000), 500);
});

test("a meter that takes over the work of another one does not drop", () => {
  const [own, reads] = [new WorkMeter(), new WorkMeter()];
  for (const meter of [own, reads]) {
    meter.add(60_000);
    assert.ok(Math.abs(meter.average(1000, 1) - 60_000) < 1);
  }
  own.absorb(reads);
  assert.ok(Math.abs(own.average(1000, 1) - 120_000) < 1);
  own.add(10_000);
  assert.ok(Math.abs(own.average(2000, 1) - 10_000) < 1);
});

test.run();
