/** Runs the story of incident 004, as `npm run incident 004` does. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { play, wishes } from "../../../../demo/incidents/silent-apiserver.ts";
import { storyOf } from "../../../support/story.ts";

const test = suite("demo/incidents/silent-apiserver");

test("watches hang without and go on with it, and the operator is told (seed 004)", async () => {
  const { broken, row } = await storyOf({ play, wishes });
  assert.equal(broken, []);
  assert.match(row("watches that hung").without, /^[1-4] of 4$/);
  assert.is(row("watches that hung").with, "0 of 4");
});

test.run();
