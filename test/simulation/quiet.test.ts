/**
 * Quiet resources while each apiserver restarts and one dies, with a few seeds. `npm run test:seeds` plays a thousand
 * seeds and the planted faults.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { playQuiet, type QuietOptions } from "./watches/quiet.ts";

const test = suite("simulation/quiet");

/**
 * Plays the seeds 1 to `count`. `wrong` lists the seeds with a problem. `told` counts the seeds whose journal reports a
 * cache to which etcd sends no progress notifications.
 */
function seeds(count: number, options?: QuietOptions): { readonly wrong: string[]; readonly told: number } {
  const wrong: string[] = [];
  let told = 0;
  for (let seed = 1; seed <= count; seed += 1) {
    const { problems, unnotified } = playQuiet(seed, options);
    if (problems.length > 0) wrong.push(`seed ${seed}: ${JSON.stringify(problems[0])}`);
    if (unnotified > 0) told += 1;
  }
  return { wrong, told };
}

test("with 10 minutes between etcd's notifications no quiet watch ends", () => {
  assert.equal(seeds(60), { wrong: [], told: 0 });
});

test("with 5 s neither, though apiservers do not ask etcd, if there are 18 s between two faults", () => {
  const options = { progress: { everyMs: 5_000, isAsked: false }, leastMs: 18_000 };
  assert.equal(seeds(40, options), { wrong: [], told: 0 });
});

test("nor does one of a custom resource, whose cache each apiserver fills when it is first asked", () => {
  assert.equal(seeds(60, { isCustom: true, leastMs: 8_000 }), { wrong: [], told: 0 });
});

test("with 10 minutes and apiservers that do not ask, they end, and it is told before", () => {
  const { wrong, told } = seeds(10, { progress: { everyMs: 600_000, isAsked: false }, leastMs: 18_000 });
  assert.equal([wrong.length, told], [10, 10]);
});

test.run();
