/**
 * Checks that the watch simulation detects faults: each deliberate fault must make a run fail soon, and one of the
 * validators that are named for it must report it first.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { figure } from "../../support/figure.ts";
import type { merge } from "../merge.ts";
import { loadMutated } from "../mutated.ts";
import { type WatchDefect, watchDefects } from "../watch-defects.ts";
import type { playForks } from "../watches/forks.ts";
import type { playQuiet } from "../watches/quiet.ts";
import type { play } from "../watches/scene.ts";

const test = suite("simulation/long/watch-defects");

const mostSeeds = 6_000;

type Caught = { readonly seed: number; readonly by: string; readonly what: string };

async function caughtBy({ scene, mutations, firstSeed }: WatchDefect): Promise<Caught | undefined> {
  if (scene === "merge") return caughtByMerge(mutations);
  if (scene === "forks") return caughtByForks(mutations);
  return scene === "quiet" || scene === "custom"
    ? caughtWhenQuiet(mutations, scene === "custom")
    : caughtByScene(mutations, firstSeed);
}

async function caughtByForks(mutations: WatchDefect["mutations"]): Promise<Caught | undefined> {
  const forks = await loadMutated<{ readonly playForks: typeof playForks }>("watches/forks.ts", mutations);
  for (let seed = 1; seed <= mostSeeds; seed += 1) {
    const [problem] = forks.playForks(seed).problems;
    if (problem !== undefined) return { seed, by: "forks", what: problem.what };
  }
  return undefined;
}

async function caughtWhenQuiet(
  mutations: WatchDefect["mutations"],
  isCustom: boolean,
): Promise<Caught | undefined> {
  const quiet = await loadMutated<{ readonly playQuiet: typeof playQuiet }>("watches/quiet.ts", mutations);
  for (let seed = 1; seed <= mostSeeds; seed += 1) {
    const [problem] = quiet.playQuiet(seed, isCustom ? { isCustom, leastMs: 8_000 } : {}).problems;
    if (problem !== undefined) return { seed, by: isCustom ? "custom" : "quiet", what: problem.what };
  }
  return undefined;
}

async function caughtByMerge(mutations: WatchDefect["mutations"]): Promise<Caught | undefined> {
  const merged = await loadMutated<{ readonly merge: typeof merge }>("merge.ts", mutations);
  for (let seed = 1; seed <= mostSeeds; seed += 1) {
    const { problem } = merged.merge(seed);
    if (problem !== undefined) return { seed, by: "merge", what: problem };
  }
  return undefined;
}

/** Tries all seeds up to `mostSeeds`: first those from `firstSeed`, then those before it. */
async function caughtByScene(
  mutations: WatchDefect["mutations"],
  firstSeed = 1,
): Promise<Caught | undefined> {
  const scene = await loadMutated<{ readonly play: typeof play }>("watches/scene.ts", mutations);
  for (let count = 0; count < mostSeeds; count += 1) {
    const seed = ((firstSeed - 1 + count) % mostSeeds) + 1;
    const [problem] = scene.play(seed).problems;
    if (problem !== undefined) return { seed, by: problem.validator, what: problem.what };
  }
  return undefined;
}

test("without a fault the same seeds are clean", async () => {
  assert.is(await caughtByMerge([]), undefined);
});

for (const defect of watchDefects) {
  test(`it is seen that ${defect.name}`, async () => {
    const caught = await caughtBy(defect);
    assert.ok(caught !== undefined, `not seen in ${mostSeeds} seeds`);
    const { scene } = defect;
    const expected: readonly string[] = typeof scene === "string" ? [scene] : scene;
    assert.ok(
      expected.includes(caught.by),
      `seen by ${caught.by}, not by ${expected.join(" or ")}: ${caught.what}`,
    );
    figure(`${defect.name}: seed ${caught.seed}, ${caught.by}, ${caught.what.slice(0, 100)}`);
  });
}

test.run();
