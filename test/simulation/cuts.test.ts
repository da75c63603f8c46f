/**
 * Writes whose requests the proxy ends, with a few seeds. `npm run test:seeds` plays enough seeds for 10,000 such cuts.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { addFigures, type CutFigures, cutCount, newFigures, playCuts } from "./cuts.ts";
import { loadMutated } from "./mutated.ts";

const test = suite("simulation/cuts");

function playAll(play: typeof playCuts, seeds: number): CutFigures {
  const sum = newFigures();
  for (let seed = 1; seed <= seeds; seed += 1) addFigures(sum, play(seed));
  return sum;
}

test("a seed is the whole run", () => {
  assert.equal(playCuts(3), playCuts(3));
});

test("however writes are cut: none is executed twice, and none that was reported as unprocessed is executed", () => {
  const sum = playAll(playCuts, 40);
  assert.equal(sum.problems, []);
  assert.ok(cutCount(sum) > 1_000, String(cutCount(sum)));
  assert.ok(
    Object.values(sum.cuts).every((count) => count > 0),
    JSON.stringify(sum.cuts),
  );
  assert.ok(sum.repeats > 200, String(sum.repeats));
});

for (const [name, file, find, replace] of [
  [
    "a write that was sent looks as if it was not",
    "upstream/pool/attempt.ts",
    "return this.#sentAt >= 0;",
    "return false;",
  ],
  [
    "a write of unknown outcome may be asked again",
    "proxy/request/local-reply.ts",
    "return isSafe ?",
    "return isSafe || true ?",
  ],
  [
    "PROTOCOL_ERROR goes on to the client of a write",
    "proxy/request/local-reply.ts",
    "code === errorCode.REFUSED_STREAM || code === errorCode.PROTOCOL_ERROR",
    "code === errorCode.REFUSED_STREAM",
  ],
  [
    "a write that was lost is sent again",
    "upstream/pool/retry-policy.ts",
    "(code === lost && isSafe)",
    "code === lost",
  ],
] as const) {
  test(`it is seen when ${name}`, async () => {
    const mutated = await loadMutated<{ playCuts: typeof playCuts }>("cuts.ts", [{ file, find, replace }]);
    assert.ok(playAll(mutated.playCuts, 15).problems.length > 0);
  });
}

test.run();
