/**
 * At least 10,000 writes whose requests the proxy ends. To replay one seed, call `playCuts(seed, console.log)` of
 * ../cuts.ts.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { figure } from "../../support/figure.ts";
import { addFigures, cutCount, newFigures, playCuts } from "../cuts.ts";

const test = suite("simulation/long/cuts");

test("in 400 runs with more than 10,000 cuts no write is executed twice, or although it was told to be unprocessed", () => {
  const sum = newFigures();
  for (let seed = 1; seed <= 400; seed += 1) addFigures(sum, playCuts(seed));
  const { problems, ...figures } = sum;
  figure(`${cutCount(sum)} cuts: ${JSON.stringify(figures)}`);
  assert.equal(problems, []);
  assert.ok(cutCount(sum) >= 10_000, String(cutCount(sum)));
});

test.run();
