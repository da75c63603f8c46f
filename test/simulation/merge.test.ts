/**
 * Merges one watch from many upstream streams with 200,000 seeds. `node test/simulation/merge.test.ts` runs only this
 * test.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { figure } from "../support/figure.ts";
import { merge } from "./merge.ts";

const test = suite("simulation/merge");

test("whichever upstream streams come and go, the client gets the whole history, each event once", () => {
  const told: string[] = [];
  let [events, attempts] = [0, 0];
  for (let seed = 1; seed <= 200_000; seed += 1) {
    const merged = merge(seed);
    events += merged.events;
    attempts += merged.attempts;
    if (merged.problem !== undefined) told.push(`seed ${seed}: ${merged.problem}`);
  }
  figure(`200000 watches over ${attempts} streams, ${events} events`);
  assert.equal(told.slice(0, 20), []);
});

test.run();
