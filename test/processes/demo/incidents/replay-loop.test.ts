/** Runs the story of incident 001, as `npm run incident 001` does. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { play, wishes } from "../../../../demo/incidents/replay-loop.ts";
import { storyOf } from "../../../support/story.ts";

const test = suite("demo/incidents/replay-loop");

test("both sides replay history, and only one names the cause (seed 001)", async () => {
  const { said, broken, row } = await storyOf({ play, wishes });
  assert.equal(broken, []);
  assert.match(said, /version-regression: apiserver-[12] sent DELETED of \/configmaps at version 1/);
  assert.ok(Number(row("replayed history").without) > 5);
  assert.is(row("the loop is told").without.trim(), "never");
});

test.run();
