import { suite } from "uvu";
import * as assert from "uvu/assert";
import { watchLimits } from "../../../src/watch/limits.ts";
import { MovePace } from "../../../src/watch/migration/move-pace.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("watch/migration/move-pace");

/** Moves as many watches as the pace allows in this time. The backend accepts each one after `acceptMs(perSecond)`. */
function moved(seconds: number, acceptMs: (perSecond: number) => number) {
  const clock = manualClock();
  const pace = new MovePace(clock);
  let count = 0;
  for (let tick = 0; tick < seconds * 100; tick += 1) {
    clock.advance(10);
    while (pace.isOpen(2) && pace.take(2)) {
      count += 1;
      pace.accepted(acceptMs(pace.perSecond));
    }
  }
  return { clock, pace, count };
}

test("while backends accept promptly, the pace rises: 25,000 watches move in 8 s", () => {
  const { pace, count } = moved(8, () => 5);
  assert.ok(count >= 25_000, String(count));
  assert.ok(pace.perSecond > 0.9 * watchLimits.movesPerSecondMost, String(pace.perSecond));
});

test("it stays where a backend begins to take longer, and falls where it takes too long", () => {
  const held = moved(20, (perSecond) => (perSecond > 2000 ? watchLimits.promptAcceptMs : 5)).pace.perSecond;
  assert.ok(held > 1500 && held < 3000, String(held));
  const slow = moved(20, (perSecond) => perSecond / 2).pace.perSecond;
  assert.ok(slow > 200 && slow <= 700, String(slow));
});

test("a 429 halves it, and it comes back to the first pace when no watch moves", () => {
  const { clock, pace } = moved(8, () => 5);
  const before = pace.perSecond;
  pace.slowDown();
  assert.ok(Math.abs(pace.perSecond - before / 2) < 1, String(pace.perSecond));
  clock.advance(60_000);
  assert.ok(pace.isOpen(2));
  assert.is(Math.round(pace.perSecond), watchLimits.movesPerSecond);
});

test("watches of the control plane have a pace of their own, which is limited as well", () => {
  const pace = new MovePace(manualClock());
  while (pace.take(2));
  while (pace.take(1));
  let count = 0;
  while (pace.take(0)) count += 1;
  assert.is(count, watchLimits.firstMoveBurst);
});

test.run();
