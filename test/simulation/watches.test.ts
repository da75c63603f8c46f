/** Watches of every kind with a few seeds. `npm run test:seeds` plays a thousand. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { playAll } from "./watches/play-all.ts";
import { play } from "./watches/scene.ts";

const test = suite("simulation/watches");

/** Seeds that failed once, each with the lesson from its failure. */
const lessons: readonly (readonly [seed: number, lesson: string])[] = [
  [300064, "the first answer after a silence of all says nothing of the other backends"],
  [300155, "an attempt that met the silence of all is none"],
];

for (const [seed, lesson] of lessons)
  test(`${lesson} (seed ${seed})`, () => assert.equal(play(seed).problems, []));

test("a seed is the whole run", () => {
  assert.equal(play(1), play(1));
});

test("in a hundred runs no watch loses, repeats or reorders an event, or ends but for a reason", () => {
  const told: string[] = [];
  const sum = playAll(1, 100, ({ seed, problems }) => told.push(`seed ${seed}: ${JSON.stringify(problems)}`));
  assert.equal(told, []);
  assert.ok((sum.counts.get("events") ?? 0) > 5_000, "too few events");
});

test.run();
