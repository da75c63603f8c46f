import { suite } from "uvu";
import * as assert from "uvu/assert";
import { extended, indexAt, nothing } from "../../../../src/ops/page/data/recorded.js";
import { timeAt } from "../../../support/page.ts";

const test = suite("ops/page/data/recorded");

type Answer = Parameters<typeof extended>[1];

const answer = (first: number, watches: readonly number[], names = ["cp-1"]): Answer => ({
  startedAt: timeAt(0),
  stepMs: 5_000,
  first,
  next: first + watches.length,
  process: { watches },
  backends: names.map((name) => ({ name, series: { watches } })),
});

test("new steps follow those that are known", () => {
  const both = extended(extended(nothing, answer(0, [1, 2])), answer(2, [3]));
  assert.equal([both.first, both.next, both.process["watches"]], [0, 3, [1, 2, 3]]);
  assert.equal(both.backends.get("cp-1")?.["watches"], [1, 2, 3]);
  assert.equal(extended(both, answer(3, [])).process["watches"], [1, 2, 3], "no step has ended since");
});

test("a backend that came later has no values before", () => {
  const both = extended(extended(nothing, answer(0, [1, 2])), answer(2, [3], ["cp-1", "cp-2"]));
  assert.equal(both.backends.get("cp-2")?.["watches"], [null, null, 3]);
});

test("steps that do not follow replace those that are known", () => {
  const known = extended(nothing, answer(0, [1, 2]));
  const later = extended(known, answer(9, [7]));
  assert.equal([later.first, later.process["watches"]], [9, [7]]);
});

test("an hour is kept", () => {
  const hour = extended(
    nothing,
    answer(
      0,
      Array.from({ length: 720 }, (_, at) => at),
    ),
  );
  const { first, next, process } = extended(hour, answer(720, [720, 721]));
  assert.equal([first, next, process["watches"]?.length, process["watches"]?.[0]], [2, 722, 720, 2]);
});

test("a time belongs to the step in which it is, and a later time to the last step", () => {
  const recorded = extended(nothing, answer(10, [1, 2, 3]));
  const at = (ms: number): number => indexAt(recorded, recorded.startedMs + ms);
  assert.equal([at(49_999), at(50_000), at(54_999), at(64_000), at(900_000)], [-1, 0, 0, 2, 2]);
});

test.run();
