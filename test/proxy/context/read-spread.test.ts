import { suite } from "uvu";
import * as assert from "uvu/assert";
import { ReadSpread } from "../../../src/proxy/context/read-spread.ts";
import { WorkMeter } from "../../../src/proxy/context/work-meter.ts";

const test = suite("proxy/context/read-spread");

const spreadOn = (backend: string): ReadSpread => new ReadSpread(new WorkMeter(), backend);

function countsOf(spread: ReadSpread, reads: number): Record<string, number> {
  const counts: Record<string, number> = {};
  for (let read = 0; read < reads; read += 1) {
    const to = spread.next() ?? "own";
    counts[to] = (counts[to] ?? 0) + 1;
  }
  return counts;
}

test("the backends get their parts of the reads, in turn", () => {
  const spread = spreadOn("a");
  assert.equal(countsOf(spread, 5), { a: 5 });
  spread.divide(new Map(Object.entries({ a: 0.5, b: 0.3, c: 0.2 })));
  assert.equal(countsOf(spread, 100), { a: 50, b: 30, c: 20 });
  const first = Array.from({ length: 4 }, () => spread.next()).join("");
  assert.ok(
    ["a", "b", "c"].every((name) => first.includes(name)),
    first,
  );
  assert.is(String(spread), "spread a 0.50, b 0.30, c 0.20");
});

test("reads that gather go to the client's own backend", () => {
  const spread = spreadOn("a");
  spread.divide(new Map([["b", 1]]));
  spread.gather();
  assert.equal(countsOf(spread, 3), { own: 3 });
  assert.is(spread.isGathering, true);
});

test("the work that was measured before the spread is handed over, and is measured on", () => {
  const meter = new WorkMeter();
  meter.add(60_000);
  assert.ok(Math.abs(meter.average(1000, 1) - 60_000) < 1);
  const spread = new ReadSpread(meter.handOver(), "a");
  assert.is(meter.average(1000, 1), 0);
  assert.ok(Math.abs(spread.averageWork(1000, 1) - 60_000) < 1);
  spread.works(10_000);
  assert.ok(Math.abs(spread.averageWork(2000, 1) - 10_000) < 1);
});

test.run();
