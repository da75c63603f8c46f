/** Can the simulation see? Every deliberate fault of the path must fail a run, and soon. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { figure } from "../../support/figure.ts";
import { defects } from "../defects.ts";
import { play } from "../scene.ts";

const test = suite("simulation/long/defects");

const mostSeeds = 1_000;

/** The first seed that complains, and of what; a path that throws has complained as well. */
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

// First of all: the defect that uses a buffer twice leaves the writers' pool with one that two of them hold.
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
