/**
 * Checks that the simulation detects faults: each deliberate fault of the data path must make a run fail within 1,000
 * seeds.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { figure } from "../../support/figure.ts";
import { defects } from "../defects.ts";
import { play } from "../scene.ts";

const test = suite("simulation/long/defects");

const mostSeeds = 1_000;

/** Returns the first seed with a problem, and that problem. An error that is thrown counts as a problem. */
function caughtBy(): { readonly seed: number; readonly problem: string } | undefined {
  for (let seed = 1; seed <= mostSeeds; seed += 1) {
    const problem = problemOf(seed);
    if (problem !== undefined) return { seed, problem };
  }
  return undefined;
}

function problemOf(seed: number): string | undefined {
  try {
    return play(seed).problems[0];
  } catch (error) {
    return String(error);
  }
}

// Must run before the tests with faults: the fault that uses a buffer twice leaves a buffer with two owners in the
// writers' pool.
test("without them the same seeds are clean", () => {
  for (let seed = 1; seed <= 20; seed += 1) assert.equal(play(seed).problems, []);
});

for (const { name, put } of defects) {
  test(`it is seen that ${name}`, () => {
    const undo = put();
    try {
      const caught = caughtBy();
      assert.ok(caught !== undefined, `not seen in ${mostSeeds} seeds`);
      figure(`${name}: seed ${caught.seed}, ${caught.problem.slice(0, 120)}`);
    } finally {
      undo();
    }
  });
}

test.run();
