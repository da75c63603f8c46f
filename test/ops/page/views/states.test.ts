import { suite } from "uvu";
import * as assert from "uvu/assert";
import { piecesOf, stateAt, statesOf } from "../../../../src/ops/page/views/states.js";
import { changeAt, now, recordedOf } from "../../../support/page.ts";

const test = suite("ops/page/views/states");
const minute = 60_000;
const from = now - 60 * minute;
const minutesOf = (pieces: ReturnType<typeof piecesOf>): unknown =>
  pieces.map((piece) => [piece.state, (piece.from - from) / minute, (piece.to - from) / minute]);

test("a backend that never changed has one state", () => {
  assert.equal(piecesOf({ state: "ready", history: [] }, from, now), [
    { state: "ready", from, to: now, text: "ready" },
  ]);
});

test("each change begins a state, and the state before the first change is the one that it changed", () => {
  const history = [changeAt(30 * minute, "ready", "suspect"), changeAt(27 * minute, "suspect", "dead")];
  const pieces = piecesOf({ state: "dead", history }, from, now);
  assert.equal(minutesOf(pieces), [
    ["ready", 0, 30],
    ["suspect", 30, 33],
    ["dead", 33, 60],
  ]);
  assert.is(pieces[2]?.text, "dead: for a reason");
  assert.is(stateAt(pieces, from + 31 * minute).state, "suspect");
  assert.is(stateAt(pieces, from - 1).state, "unknown");
});

test("a change before the time axis says only how the axis begins", () => {
  const history = [changeAt(180 * minute, "ready", "dead"), changeAt(15 * minute, "dead", "ready")];
  assert.equal(minutesOf(piecesOf({ state: "ready", history }, from, now)), [
    ["dead", 0, 45],
    ["ready", 45, 60],
  ]);
});

test("states fill the time axis without a gap, even if the clocks of browser and proxy differ", () => {
  const history = [changeAt(90 * minute, "unknown", "ready"), changeAt(-2 * minute, "ready", "dead")];
  assert.equal(minutesOf(piecesOf({ state: "dead", history }, from, now)), [["ready", 0, 60]]);
});

test("a backend whose earlier changes are lost, or that was removed, has the states of the recorded steps", () => {
  const recorded = recordedOf({ "cp-1": { state: [0, 0, 3, null, 4] } });
  const where = { name: "cp-1", from: recorded.startedMs, to: recorded.startedMs + 25_000 };
  const steps = statesOf(undefined, recorded, where).map((piece) => [
    piece.state,
    piece.from - where.from,
    piece.to - where.from,
  ]);
  const expected = [
    ["ready", 0, 10_000],
    ["suspect", 10_000, 15_000],
    ["dead", 20_000, 25_000],
  ];
  assert.equal(steps, expected);
  const many = Array.from({ length: 64 }, (_, at) => changeAt(64 - at, "ready", "suspect"));
  assert.is(statesOf({ state: "dead", history: many }, recorded, where).length, 3);
});

test("before the process began there are no states", () => {
  const recorded = recordedOf({ "cp-1": { state: [0] } });
  const [first] = statesOf({ state: "ready", history: [] }, recorded, {
    name: "cp-1",
    from: 0,
    to: recorded.startedMs + 5_000,
  });
  assert.is(first?.from, recorded.startedMs);
});

test.run();
