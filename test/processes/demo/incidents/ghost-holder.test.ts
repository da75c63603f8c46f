/** Runs the story of incident 002, as `npm run incident 002` does. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { play, wishes } from "../../../../demo/incidents/ghost-holder.ts";
import { storyOf } from "../../../support/story.ts";

const test = suite("demo/incidents/ghost-holder");

test("the lease is held by a pod that is gone, and only one side says from where (seed 002)", async () => {
  const { said, broken, row } = await storyOf({ play, wishes });
  assert.equal(broken, []);
  assert.match(said, /kubectl +sees the lease renewed, by nginx-7d4f-x2k4l; asked for that pod: 404/);
  assert.is(row("where it lives").with, "127.0.0.9");
  assert.is(row("where it lives").without, "the lease does not say");
});

test.run();
