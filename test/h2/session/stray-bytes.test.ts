import { suite } from "uvu";
import * as assert from "uvu/assert";
import { h2Limits } from "../../../src/h2/core/limits.ts";
import { StrayBytes } from "../../../src/h2/session/streams.ts";
import { upstreamLimits } from "../../../src/upstream/pool/limits.ts";

const test = suite("h2/session/stray-bytes");

test("what was under way is forgiven to its last byte, and one more is not", () => {
  const stray = new StrayBytes();
  stray.allow(100);
  stray.allow(50);
  assert.ok(stray.take(150));
  assert.not(stray.take(1));
});

test("a window that is below zero forgives nothing", () => {
  const stray = new StrayBytes();
  stray.allow(-100);
  assert.ok(stray.take(0));
  assert.not(stray.take(1));
});

test("what is forgiven is bounded, so that it cannot be hoarded", () => {
  const stray = new StrayBytes();
  for (let count = 0; count < 1000; count += 1) stray.allow(upstreamLimits.streamWindowMostBytes);
  assert.ok(stray.take(h2Limits.strayBytes));
  assert.not(stray.take(1));
});

test.run();
