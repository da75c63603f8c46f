import { suite } from "uvu";
import * as assert from "uvu/assert";
import { RecentResets } from "../../../src/h2/session/recent-resets.ts";

const test = suite("h2/recent-resets");

test("the last 256 are remembered, the older ones are not", () => {
  const resets = new RecentResets();
  for (let id = 1; id <= 2 * 300; id += 2) resets.add(id);
  assert.equal([resets.has(1), resets.has(87), resets.has(89), resets.has(599)], [false, false, true, true]);
});

test("what is over is forgiven once", () => {
  const resets = new RecentResets();
  resets.add(7);
  assert.equal([resets.delete(7), resets.delete(7), resets.has(7)], [true, false, false]);
});

test.run();
