/** Quiet resources while each apiserver restarts and one dies, with a thousand seeds. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { figure } from "../../support/figure.ts";
import { longSeeds } from "../../support/seeds.ts";
import { playQuiet } from "../watches/quiet.ts";

const test = suite("simulation/long/quiet");

test("in all runs with 10 minutes between etcd's notifications no quiet watch ends", () => {
  const wrong: string[] = [];
  let moves = 0;
  for (let seed = 1; seed <= longSeeds; seed += 1) {
    const { problems, counts } = playQuiet(seed);
    moves += counts.get("moves") ?? 0;
    if (problems.length > 0) wrong.push(`seed ${seed}: ${JSON.stringify(problems[0])}`);
  }
  figure(`${moves} moves`);
  assert.equal(wrong, []);
  assert.ok(moves > 5 * longSeeds, "too few moves");
});

test.run();
