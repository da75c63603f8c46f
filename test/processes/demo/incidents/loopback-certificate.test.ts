/** Runs the story of incident 003, as `npm run incident 003` does. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { play, wishes } from "../../../../demo/incidents/loopback-certificate.ts";
import { storyOf } from "../../../support/story.ts";

const test = suite("demo/incidents/loopback-certificate");

test("all checks say ok, and only one side knows the day of the end (seed 003)", async () => {
  const { said, broken, row } = await storyOf({ play, wishes });
  assert.equal(broken, []);
  assert.match(said, /loopback-certificate-expiring: .* of apiserver-2 expires in 19 days/);
  const [answered, asked] = row("readyz").without.match(/\d+/g) ?? [];
  assert.is(answered, asked);
});

test.run();
