/** The short form of `npm run fuzz`: runs the corpus of every target, and then fuzzes it for some seconds. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { figure } from "../support/figure.ts";
import { mostInputs, readCorpus } from "./corpus.ts";
import { hunt, lineOf } from "./hunt.ts";
import { targetNames } from "./targets.ts";

const test = suite("fuzz");

const seconds = 2;
/**
 * The share of a target's blocks that its corpus must reach. If it reaches less, the corpus no longer fits the sources.
 */
const leastShare = 0.7;

test("a fault behind six bytes that only coverage leads to is found", async () => {
  const { crashes } = await hunt("maze", 20, 1);
  assert.match(crashes[0]?.message ?? "", "the end of the maze");
});

for (const name of targetNames)
  test(`${name}: whatever comes, what must hold holds`, async () => {
    const result = await hunt(name, seconds, 1);
    figure(lineOf(name, seconds, result));
    assert.equal(
      result.crashes.map(({ input, message }) => `${message} for ${input.toString("base64")}`),
      [],
    );
    assert.ok(result.own.ran > leastShare * result.own.all, lineOf(name, seconds, result));
  });

test("the corpus stays small", () => {
  for (const name of targetNames) {
    const inputs = readCorpus(name);
    assert.ok(inputs.length > 10 && inputs.length <= mostInputs, `${name}: ${inputs.length} inputs`);
  }
});

test.run();
