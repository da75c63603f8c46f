import * as fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Capacity } from "../../../src/proxy/load/capacity.ts";
import { loadLimits } from "../../../src/proxy/load/limits.ts";

const test = suite("proxy/load/capacity");
const { highPressure, lowPressure, leastCapacity, capacityStep, leastCapacityStep, calmSteps } = loadLimits;

test("a slow backend loses capacity down to a limit, keeps it between both limits, and gets it back", () => {
  const capacity = new Capacity();
  capacity.regulate(1);
  assert.is(capacity.share, 1);
  capacity.regulate(highPressure + 0.1);
  assert.is(capacity.share, 1 - capacityStep);
  const before = capacity.share;
  for (const pressure of [highPressure, lowPressure]) capacity.regulate(pressure);
  assert.is(capacity.share, before);
  for (let step = 0; step < 100; step += 1) capacity.regulate(9);
  assert.is(capacity.share, leastCapacity);
  for (let step = 0; step < 100; step += 1) capacity.regulate(1);
  assert.is(capacity.share, 1);
});

test("the steps halve at each change of direction, and are large again after a time with full capacity", () => {
  const capacity = new Capacity();
  const change = (pressure: number): number => {
    const before = capacity.share;
    capacity.regulate(pressure);
    return Math.abs(capacity.share - before) / before;
  };
  const isAbout = (value: number, expected: number): void =>
    assert.ok(Math.abs(value - expected) < 1e-9, `${value}, expected ${expected}`);
  for (let step = 0; step < 4; step += 1) isAbout(change(9), capacityStep);
  for (let halves = 1; halves < 6; halves += 1)
    isAbout(change(halves % 2 === 1 ? 1 : 9), Math.max(leastCapacityStep, capacityStep / 2 ** halves));
  for (let step = 0; step < 2 * calmSteps; step += 1) capacity.regulate(highPressure);
  isAbout(change(9), leastCapacityStep);
  while (capacity.share < 1) capacity.regulate(1);
  for (let step = 0; step < calmSteps; step += 1) capacity.regulate(1);
  isAbout(change(9), capacityStep);
});

test("whatever the pressure, the capacity stays within its limits", () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0, max: 100, noNaN: true }), { maxLength: 200 }), (pressures) => {
      const capacity = new Capacity();
      for (const pressure of pressures) {
        capacity.regulate(pressure);
        assert.ok(capacity.share >= leastCapacity && capacity.share <= 1);
      }
    }),
  );
});

test.run();
