import { suite } from "uvu";
import * as assert from "uvu/assert";
import { inSlices, sliceLimits, stop } from "../../src/base/slices.ts";
import { countedClock, manualClock } from "../support/clock.ts";

const test = suite("slices");

const many = 50_000;
/** Compares without `assert.equal`, which would print a diff of 50,000 lines. */
function isSame(seen: readonly number[], meant: readonly number[]): boolean {
  return seen.length === meant.length && seen.every((one, index) => one === meant[index]);
}

const numbers = Array.from({ length: many }, (_, index) => index);

test("each of 50,000 entries is visited once, and no turn visits more than its part", () => {
  const clock = countedClock();
  const perTurn = new Map<number, number>();
  const seen: number[] = [];
  let isDone = false;
  inSlices(
    clock,
    numbers,
    (entry) => {
      perTurn.set(clock.turns, (perTurn.get(clock.turns) ?? 0) + 1);
      seen.push(entry);
    },
    () => {
      isDone = true;
    },
  );
  assert.is(seen.length, sliceLimits.sliceEntries, "the first slice is walked at once");
  clock.turn();
  assert.ok(isSame(seen, numbers));
  assert.is(Math.max(...perTurn.values()), sliceLimits.sliceEntries);
  assert.is(isDone, true);
});

test("a slice ends when its time is over, however few it has visited", () => {
  const clock = countedClock();
  const perTurn = new Map<number, number>();
  inSlices(clock, numbers.slice(0, 500), () => {
    perTurn.set(clock.turns, (perTurn.get(clock.turns) ?? 0) + 1);
    clock.stall(sliceLimits.sliceMs / 20);
  });
  clock.turn();
  assert.ok(Math.max(...perTurn.values()) <= 21, String(Math.max(...perTurn.values())));
  assert.is(
    perTurn.values().reduce((sum, count) => sum + count, 0),
    500,
  );
});

test("few entries are visited before it returns, and none is as good", () => {
  const clock = manualClock();
  const seen: number[] = [];
  inSlices(
    clock,
    [1, 2, 3],
    (entry) => seen.push(entry),
    () => seen.push(0),
  );
  inSlices(
    clock,
    [],
    () => seen.push(-1),
    () => seen.push(9),
  );
  assert.equal(seen, [1, 2, 3, 0, 9]);
});

test("a Set may change meanwhile: a removed member is not visited, one that stayed is visited once", () => {
  const clock = countedClock();
  const changing = new Set(numbers);
  const seen: number[] = [];
  let isFirst = true;
  inSlices(clock, changing, (entry) => {
    seen.push(entry);
    if (clock.turns === 0 || !isFirst) return;
    isFirst = false;
    for (const one of numbers) if (one % 2 === 1) changing.delete(one);
  });
  clock.turn();
  const first = sliceLimits.sliceEntries;
  assert.ok(
    isSame(
      seen,
      numbers.filter((one) => one <= first || one % 2 === 0),
    ),
  );
});

test("a visit may say that it is enough", () => {
  const clock = manualClock();
  let visits = 0;
  let ends = 0;
  inSlices(
    clock,
    numbers,
    () => {
      visits += 1;
      return visits === 3 * sliceLimits.sliceEntries ? stop : undefined;
    },
    () => {
      ends += 1;
    },
  );
  clock.turn();
  assert.equal([visits, ends], [3 * sliceLimits.sliceEntries, 1]);
});

test("the caller that began a walk may end it", () => {
  const clock = manualClock();
  let visits = 0;
  const end = inSlices(
    clock,
    numbers,
    () => {
      visits += 1;
    },
    () => assert.unreachable(),
  );
  end();
  clock.turn();
  assert.is(visits, sliceLimits.sliceEntries);
});

test("a visit that fails costs its entry only", () => {
  const clock = manualClock();
  const seen: number[] = [];
  const begin = (): unknown =>
    inSlices(clock, numbers, (entry) => {
      if (entry === 7) throw new Error("a fault of the proxy");
      seen.push(entry);
    });
  assert.throws(begin);
  clock.turn();
  assert.ok(
    isSame(
      seen,
      numbers.filter((entry) => entry !== 7),
    ),
  );
});

test.run();
