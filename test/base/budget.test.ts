import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Budget } from "../../src/base/budget.ts";
import { manualClock } from "../support/clock.ts";

const test = suite("h2/budget");

/** How many of `tries` are let through. */
function taken(budget: Budget, tries: number): number {
  let count = 0;
  for (let at = 0; at < tries; at++) if (budget.take()) count += 1;
  return count;
}

test("a burst passes at once and no more until time has passed", () => {
  const clock = manualClock();
  const budget = new Budget(clock, 10, 5);
  assert.is(taken(budget, 100), 10);
  clock.advance(1000);
  assert.is(taken(budget, 100), 5);
});

test("a steady excess gets the rate that it is allowed, not nothing", () => {
  const clock = manualClock();
  const budget = new Budget(clock, 10, 5);
  taken(budget, 10);
  let count = 0;
  for (let second = 0; second < 60; second++) {
    clock.advance(1000);
    count += taken(budget, 50);
  }
  assert.is(count, 300);
});

test("long quiet fills it to the burst and not beyond", () => {
  const clock = manualClock();
  const budget = new Budget(clock, 10, 5);
  taken(budget, 20);
  clock.advance(3_600_000);
  assert.is(taken(budget, 100), 10);
});

test("a bonus lets it go into debt, which time pays back", () => {
  const clock = manualClock();
  const budget = new Budget(clock, 10, 5);
  let count = 0;
  while (budget.take(1, 20)) count += 1;
  assert.is(count, 30);
  clock.advance(2000);
  assert.not(budget.take());
  clock.advance(3000);
  assert.ok(budget.take());
});

test("what is earned is bounded, and outlasts no spending (A4)", () => {
  const clock = manualClock();
  const budget = new Budget(clock, 10, 0);
  for (let at = 0; at < 1_000_000; at++) budget.earn(20, 100);
  assert.is(taken(budget, 1000), 100);
  budget.earn(20, 100);
  assert.is(taken(budget, 1000), 20);
});

test.run();
