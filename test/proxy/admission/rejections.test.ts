import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { Rejections } from "../../../src/proxy/admission/rejections.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("proxy/admission/rejections");

const times = (count: number, run: () => void): void => {
  for (let index = 0; index < count; index += 1) run();
};

test("A43: an address with more 401s than bearers that were accepted is rejected, and forgiven after a minute at most", () => {
  const clock = manualClock();
  const rejections = new Rejections(clock);
  times(limits.rejections + 1, () => rejections.add("a"));
  assert.ok(rejections.isRejected("a"));
  assert.not(rejections.isRejected("b"));
  clock.advance(1000);
  assert.not(rejections.isRejected("a"));
  times(100_000, () => rejections.add("a"));
  clock.advance(59_000);
  assert.ok(rejections.isRejected("a"));
  clock.advance(1000);
  assert.not(rejections.isRejected("a"));
});

test("a few bad tokens among many good ones reject no client, and are forgotten", () => {
  const rejections = new Rejections(manualClock());
  times(5000, () => {
    rejections.add("nat");
    rejections.accepted("nat");
    rejections.accepted("nat");
  });
  assert.not(rejections.isRejected("nat"));
  assert.is(rejections.size, 0);
  // What was accepted long ago excuses nothing.
  times(limits.rejections + 1, () => rejections.add("nat"));
  assert.ok(rejections.isRejected("nat"));
});

test("so many addresses are counted, and no more", () => {
  const rejections = new Rejections(manualClock());
  for (let index = 0; index < limits.rejectedAddresses + 100; index += 1) rejections.add(`a${index}`);
  assert.is(rejections.size, limits.rejectedAddresses);
});

test.run();
