import { suite } from "uvu";
import * as assert from "uvu/assert";
import { partsOf } from "../../../src/proxy/balance/plan-spread.ts";

const test = suite("proxy/balance/plan-spread");

const three = new Map([
  ["a", 1],
  ["b", 1],
  ["c", 1],
]);

const parts = (
  load: number,
  loads: Readonly<Record<string, number>>,
  shares: ReadonlyMap<string, number> = three,
): Record<string, number> =>
  Object.fromEntries(
    Array.from(partsOf(load, new Map(Object.entries(loads)), shares), ([name, part]) => [
      name,
      Math.round(part * 100) / 100,
    ]),
  );

test("the parts fill the least loaded backends first, until all are even", () => {
  assert.equal(parts(30, {}), { a: 0.33, b: 0.33, c: 0.33 });
  assert.equal(parts(10, { a: 50, b: 20 }), { c: 1 });
  assert.equal(parts(40, { a: 50, b: 20 }), { c: 0.75, b: 0.25 });
  assert.equal(parts(80, { a: 50, b: 20 }), { c: 0.63, b: 0.38 });
  assert.equal(parts(200, { a: 50, b: 20 }), { c: 0.45, b: 0.35, a: 0.2 });
});

test("a backend with a smaller share is filled to its share", () => {
  const shares = new Map([
    ["a", 1],
    ["b", 0.25],
  ]);
  assert.equal(parts(100, {}, shares), { a: 0.8, b: 0.2 });
  assert.equal(parts(100, { a: 100 }, shares), { b: 0.4, a: 0.6 });
});

test("without a load, the parts still add up to 1", () => {
  assert.equal(parts(0, {}), { a: 0.33, b: 0.33, c: 0.33 });
  assert.equal(parts(0, { a: 10, b: 10 }), { a: 0.33, b: 0.33, c: 0.33 });
});

test.run();
