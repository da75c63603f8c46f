/** Runs the story of incident 000, as `npm run incident 000` does. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { play, wishes } from "../../../../demo/incidents/bad-secret.ts";
import { storyOf } from "../../../support/story.ts";

const test = suite("demo/incidents/bad-secret");

test("the naive ingress ends and takes the good host with it; here each goes on and the operator is told (seed 000)", async () => {
  const { said, broken, row } = await storyOf({ play, wishes });
  assert.equal(broken, []);
  assert.match(said, /naive proxy +its process ends: Error: .*key values mismatch/);
  assert.match(said, /watchkeeper +certificate-refused: .*bank\.example\.test/);
  const { without, with: ours } = row("shop.example.test answered");
  const [answered, asked] = without.split(" of ").map(Number);
  assert.ok((answered ?? 0) < (asked ?? 0), without);
  assert.is(ours.split(" of ")[0], ours.split(" of ")[1]);
});

test.run();
