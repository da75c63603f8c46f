/** The whole data path with a thousand seeds. To replay a seed that failed: test/simulation/run.ts --seed N. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { figure } from "../../support/figure.ts";
import { longSeeds } from "../../support/seeds.ts";
import { playAll, summaryOf } from "../play-all.ts";
import { play } from "../scene.ts";

const test = suite("simulation/long/path");

/** Seeds that failed once, each with the lesson from its failure. */
const lessons: readonly (readonly [seed: number, lesson: string])[] = [];

for (const [seed, lesson] of lessons) {
  test(`${lesson} (seed ${seed})`, () => assert.is(play(seed).problems.join("\n"), ""));
}

test("in all runs, calm and stormy, nothing is astray, cut short, lost, out of order or left open", () => {
  const told: string[] = [];
  const sum = playAll(1, longSeeds, {
    failed: ({ seed, problems }) => told.push(`seed ${seed}: ${problems.join("; ")}`),
  });
  figure(summaryOf(sum));
  assert.equal(told, []);
  assert.is(sum.astray, 0);
  assert.ok(sum.decisions > 1_000 * longSeeds);
});

test.run();
