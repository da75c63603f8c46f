/** The same as forks.test.ts with more seeds. FORKS_SEEDS="from-to" plays other seeds. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { longSeeds } from "../../support/seeds.ts";
import { playForks } from "../watches/forks.ts";

const test = suite("simulation/long/forks");
const [from = 1, to = longSeeds] = (process.env["FORKS_SEEDS"] ?? `1-${longSeeds}`).split("-").map(Number);

test("in all runs an apiserver on a restored copy is found, nothing of it stays with any client, and all is right soon", () => {
  const told: string[] = [];
  let early = 0;
  for (let seed = from; seed <= to; seed += 1) {
    const { problems, counts } = playForks(seed);
    if (problems.length > 0) told.push(`seed ${seed}: ${JSON.stringify(problems)}`);
    early += counts.get("shown before it was found") ?? 0;
  }
  assert.equal(told, []);
  process.stdout.write(`${early} events were shown before the copy had answered\n`);
});

test.run();
