import { suite } from "uvu";
import * as assert from "uvu/assert";
import { h2Limits } from "../../../src/h2/core/limits.ts";
import { Refusals } from "../../../src/h2/session/streams.ts";

const test = suite("h2/session/refusals");

test("one beyond the limit is refused, and a hundred in a row end the session (A3)", () => {
  const refusals = new Refusals();
  for (let count = 0; count < h2Limits.refusedStreams; count += 1)
    assert.is(refusals.ofOneOf(101, 100)?.scope, "stream");
  assert.throws(() => refusals.ofOneOf(101, 100), /Too many streams refused/);
});

test("one that is taken lets the count begin anew (A3's honest twin)", () => {
  const refusals = new Refusals();
  for (let round = 0; round < 10; round += 1) {
    for (let count = 0; count < h2Limits.refusedStreams; count += 1) refusals.ofOneOf(101, 100);
    assert.is(refusals.ofOneOf(100, 100), undefined);
  }
});

test("the first list that is too long is answered, the second ends the session (A7)", () => {
  const refusals = new Refusals();
  refusals.longHead();
  assert.throws(() => refusals.longHead(), /too long/);
});

test.run();
