import { suite } from "uvu";
import * as assert from "uvu/assert";
import { ribbonOf } from "../../../src/page/views/backends.js";
import { changeAt, now } from "../../support/page.ts";

const test = suite("page/views/backends: the ribbon");
const minute = 60_000;

test("a backend that never changed is one piece", () => {
  assert.equal(ribbonOf({ state: "ready", history: [] }, now), [
    { state: "ready", percent: 100, text: "ready" },
  ]);
});

test("each change begins a piece, and before the first it was what that came from", () => {
  const history = [changeAt(30 * minute, "ready", "suspect"), changeAt(27 * minute, "suspect", "dead")];
  const pieces = ribbonOf({ state: "dead", history }, now);
  assert.equal(
    pieces.map(({ state, percent }) => [state, percent]),
    [
      ["ready", 50],
      ["suspect", 5],
      ["dead", 45],
    ],
  );
  assert.is(pieces[2]?.text, "dead: for a reason");
});

test("what changed more than an hour ago only says how the hour began", () => {
  const history = [changeAt(180 * minute, "ready", "dead"), changeAt(15 * minute, "dead", "ready")];
  const pieces = ribbonOf({ state: "ready", history }, now);
  assert.equal(
    pieces.map(({ state, percent }) => [state, percent]),
    [
      ["dead", 75],
      ["ready", 25],
    ],
  );
});

test("all pieces together are the hour, whatever the clocks say", () => {
  const history = [changeAt(90 * minute, "unknown", "ready"), changeAt(-2 * minute, "ready", "dead")];
  const sum = ribbonOf({ state: "dead", history }, now).reduce((total, { percent }) => total + percent, 0);
  assert.is(Math.round(sum), 100);
});

test.run();
